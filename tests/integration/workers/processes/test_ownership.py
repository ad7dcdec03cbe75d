"""One owner per folder, and no process of anybody else is ever touched."""

import shutil
import signal
import subprocess
import sys

import pytest

from workers.embedded import find_server
from workers.errors import FolderInUseError, FolderUnusableError
from workers.processes import Ledger, Supervisor, owner_of

pytestmark = [pytest.mark.processes, pytest.mark.server]


def test_a_second_owner_is_refused_and_told_the_first(start_owner, folder):
    owner = start_owner("server")
    owner.told("ready")
    with pytest.raises(FolderInUseError) as refusal, Supervisor(folder):
        pass
    assert refusal.value.pid == owner.process.pid == owner_of(folder)
    assert f"in use by process {owner.process.pid}" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_others_find_the_server_of_a_living_owner_only(start_owner, folder):
    assert find_server(folder) is None
    owner = start_owner("server")
    url = owner.told("server")
    found = find_server(folder)
    assert found is not None
    assert found.store_url == url
    owner.send(signal.SIGTERM)
    owner.ended()
    assert find_server(folder) is None
    assert owner_of(folder) is None


def test_the_owner_of_a_copied_folder_leaves_the_processes_of_the_original_alone(start_owner, folder, tmp_path, living_of):
    owner = start_owner("server")
    owner.told("ready")
    before = living_of()
    shutil.copytree(folder, tmp_path / "copy")
    assert find_server(tmp_path / "copy") is None
    said: list[str] = []
    with Supervisor(tmp_path / "copy", say=said.append):
        pass
    assert living_of() == before
    assert said == []


def test_a_process_that_only_has_the_pid_of_a_recorded_one_is_left_alone(folder):
    innocent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    record = folder / "processes" / "feed.json"
    record.parent.mkdir(parents=True)
    asked = Ledger(folder).first_line("feed", "worker", foundation=False, grace=1.0)
    record.write_text(f"{asked}\n{innocent.pid} another-boot/1\n")

    said: list[str] = []
    with Supervisor(folder, say=said.append):
        pass
    assert innocent.poll() is None
    assert not record.exists()
    assert said == []
    innocent.communicate(b"\n")
    assert innocent.returncode == 0


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FolderUnusableError) as error, Supervisor(tmp_path / "file" / ".jarvis"):
        pass
    assert str(error.value).endswith("cannot be used (Not a directory): mend it or choose another folder.")


@pytest.mark.parametrize("name", ["logs", "processes"])
def test_a_file_in_the_place_of_a_folder_is_one_line(folder, name):
    folder.mkdir()
    (folder / name).touch()
    with pytest.raises(FolderUnusableError) as error, Supervisor(folder):
        pass
    assert str(error.value) == f"{folder / name} cannot be used (File exists): mend it or choose another folder."


def test_the_folder_is_for_its_user_alone(folder):
    with Supervisor(folder):
        modes = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert modes == {"owner.lock": 0o600, "processes": 0o700, "logs": 0o700, "logs/guardian.log": 0o600}
