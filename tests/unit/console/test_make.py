"""`jarvis make workflow`: what it writes runs as written, and nothing is ever overwritten."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with the rooms and that folder on its path."""
    environment = {**os.environ, "PYTHONPATH": f"{HOME}{os.pathsep}{folder}"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def test_the_workflow_and_its_test_are_written_and_the_test_is_green(jarvis, empty_folder):
    code, data, _ = jarvis("make", "workflow", "order_intake")

    assert (code, data) == (0, "order_intake.py\ntest_order_intake.py\n")
    done = python(empty_folder, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_order_intake.py")
    assert (done.returncode, "2 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_workflow_is_known_to_the_mesh_by_its_name(jarvis, empty_folder):
    jarvis("make", "workflow", "order_intake")
    program = (
        "import order_intake\nfrom workers.registry import definition\n"
        "print(definition('order_intake', 'order_intake:1').run().execution.result)\n"
    )
    done = python(empty_folder, "-c", program)
    assert (done.stdout, done.stderr) == ("hello, world\n", "")


def test_what_is_written_is_formatted_and_without_a_fault(jarvis, empty_folder):
    jarvis("make", "workflow", "order_intake")
    for words in (["check", "--select", "B,E,F,PERF,PT,PYI,RUF,SIM,UP,W"], ["format", "--check"]):
        done = python(empty_folder, "-m", "ruff", *words, "--no-cache", "--line-length", "128", ".")
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_words_say_how_to_go_on(jarvis, empty_folder):
    said = jarvis("make", "workflow", "order_intake")[2]

    assert "its test: python -m pytest test_order_intake.py" in said
    assert f"PYTHONPATH={empty_folder} JARVIS_MODULES=workers.definitions,order_intake jarvis graph order_intake" in said
    assert "MeshClient().start('order_intake', 'order_intake:1')" in said


def test_another_folder_can_be_named(jarvis, empty_folder):
    (empty_folder / "flows").mkdir()
    code, data, said = jarvis("make", "workflow", "order_intake", "--folder", "flows")

    assert (code, data) == (0, "flows/order_intake.py\nflows/test_order_intake.py\n")
    assert "python -m pytest flows/test_order_intake.py" in said


@pytest.mark.parametrize("there", ["order_intake.py", "test_order_intake.py"])
def test_nothing_is_overwritten_and_nothing_half_written(jarvis, empty_folder, there):
    (empty_folder / there).write_text("mine")
    code, data, said = jarvis("make", "workflow", "order_intake")

    assert (code, data, said) == (2, "", f"jarvis: {there} is there already: take another name, or another --folder\n")
    assert [(path.name, path.read_text()) for path in empty_folder.iterdir()] == [(there, "mine")]


@pytest.mark.parametrize(
    ("name", "proposal"),
    [
        ("OrderIntake", "order_intake"),
        ("order-intake", "order_intake"),
        ("../order", "order"),
        ("9lives", "lives"),
        ("class", "order_intake"),
        ("", "order_intake"),
        ("é", "order_intake"),
        ("a" * 100, "order_intake"),
    ],
)
def test_a_name_that_no_module_can_have_is_misuse_with_a_proposal(jarvis, empty_folder, name, proposal):
    code, data, said = jarvis("make", "workflow", name)

    assert (code, data, said.count("\n")) == (2, "", 1)
    assert said.endswith(f"cannot name a module: use lower-case letters, digits and _, such as {proposal}\n")
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "workflow", "redis"])
def test_the_name_of_a_module_that_is_there_is_misuse(jarvis, empty_folder, name):
    code, _, said = jarvis("make", "workflow", name)
    assert (code, said) == (2, f"jarvis: there is a module {name!r} already: take another name, such as {name}_workflow\n")
    assert list(empty_folder.iterdir()) == []


def test_a_folder_that_is_not_there_is_misuse(jarvis):
    code, _, said = jarvis("make", "workflow", "order_intake", "--folder", "nowhere")
    assert (code, said) == (2, "jarvis: nowhere is no folder: make it first, or name another one with --folder\n")


def test_a_folder_that_cannot_be_written_to_fails_in_one_line(jarvis, empty_folder):
    # A link that leads nowhere: nothing is there, and nothing can be made there.
    (empty_folder / "order_intake.py").symlink_to("gone/away.py")
    code, _, said = jarvis("make", "workflow", "order_intake")
    assert (code, said.count("\n")) == (1, 1)
    assert "order_intake.py cannot be written" in said
