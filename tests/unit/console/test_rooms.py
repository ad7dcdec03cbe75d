"""The check that every room is ours."""

import subprocess
import sys
from pathlib import Path

from console.rooms import ROOMS, foreign_room, room_places

HOME = Path(__file__).parents[3]


def test_all_rooms_of_this_program_are_its_own():
    assert foreign_room(room_places(ROOMS), HOME) is None


def test_a_room_that_comes_from_elsewhere_is_found():
    places = {**room_places(ROOMS), "bus": Path("/elsewhere/bus.py")}
    assert foreign_room(places, HOME) == ("bus", Path("/elsewhere/bus.py"))


def test_a_room_that_is_not_there_is_found():
    assert foreign_room({**room_places(ROOMS), "mesh": None}, HOME) == ("mesh", None)


def test_start_up_names_the_file_of_a_foreign_room(tmp_path):
    (tmp_path / "bus.py").write_text("raise RuntimeError('imported')\n")
    program = f"import sys; sys.path.insert(0, {str(HOME)!r}); sys.path.insert(0, {str(tmp_path)!r}); "
    program += "from console.main import run; sys.exit(run(['brief']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"jarvis: the package 'bus' is {tmp_path}/bus.py, which is not ours: {HOME}/bus should be; "
        "look at PYTHONPATH, or install again\n"
    )
