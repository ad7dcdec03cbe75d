"""From what was typed to an exit code, for everything that is decided before a mesh is needed."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import console.commands.init
from console import main
from workers.processes import StopRequested

HOME = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["brief", "--date", "2026-13-01"], "'2026-13-01' is not a date: write it as 2026-11-30"),
        (["brief", "--date"], "Option '--date' requires an argument"),
        (["brief", "--nope"], "No such option: --nope (see `jarvis brief --help`)"),
        (["brief", "today"], "Got unexpected extra argument"),
        (["breif"], "No such command 'breif'"),
        (["signals"], "Missing command (see `jarvis signals --help`)"),
        (["signals", "tail", "--topic", "a..b"], "'a..b' is not a topic pattern"),
        (["signals", "tail", "--since", "yesterday"], "'yesterday' is no time: write an age such as 30m or 2h"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(jarvis, arguments, words):
    code, data, said = jarvis(*arguments)

    assert (code, data, said.count("\n")) == (2, "", 1)
    assert said.startswith(f"jarvis: {words}")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[operator\n", "jarvis.toml: is not TOML"),
        ('[operator]\nzone = "Mars/Olympus"\n', "there is no time zone 'Mars/Olympus'"),
        ("[opperator]\n", "there is no table 'opperator'"),
        ('[schedule]\nbriefing = "25:00"\n', "briefing"),
    ],
)
@pytest.mark.parametrize("command", [["brief"], ["up"], ["agents"], ["doctor"], ["signals", "tail"], ["watchdog", "sweep"]])
def test_a_mistake_in_the_settings_is_one_line_whatever_the_command(jarvis, empty_folder, command, settings, words):
    (empty_folder / "jarvis.toml").write_text(settings)
    code, data, said = jarvis(*command)

    assert (code, data, said.count("\n")) == (2, "", 1)
    assert words in said
    assert not (empty_folder / ".jarvis").exists()


def test_a_mistake_in_the_environment_is_one_line(jarvis, monkeypatch):
    monkeypatch.setenv("JARVIS_SWEEP_EVERY", "often")
    code, _, said = jarvis("brief")

    assert (code, said.count("\n")) == (2, 1)
    assert "sweep_every" in said


@pytest.mark.parametrize("command", [["brief"], ["up"], ["doctor"]])
def test_an_address_that_is_none_is_misuse(jarvis, monkeypatch, command):
    monkeypatch.setenv("JARVIS_REDIS_URL", "http://server.example")
    code, _, said = jarvis(*command)

    assert (code, said.count("\n")) == (2, 1)
    assert "its scheme 'http' is none of redis://" in said


def test_the_version_is_data(jarvis):
    code, data, said = jarvis("--version")
    assert (code, said) == (0, "")
    assert re.fullmatch(r"jarvis \d+\.\d+\.\d+\n", data)


def test_without_a_command_the_commands_are_listed(jarvis):
    code, data, _ = jarvis()
    assert code == 0
    assert all(name in data for name in ("brief", "up", "init", "signals", "agents", "watchdog", "doctor"))


def test_help_names_the_options_of_a_command(jarvis):
    code, data, _ = jarvis("brief", "--help")
    assert code == 0
    assert all(option in data for option in ("--date", "--again", "--json"))


@pytest.mark.parametrize(
    ("stop", "code"),
    [(KeyboardInterrupt(), 130), (StopRequested(signal.SIGINT), 130), (StopRequested(signal.SIGTERM), 143)],
)
def test_a_signal_becomes_the_exit_code_that_shells_know(jarvis, monkeypatch, stop, code):
    monkeypatch.setattr(main, "_obey", _raising(stop))
    assert jarvis("brief") == (code, "", "")


def test_an_error_that_nobody_foresaw_is_called_a_bug(jarvis, monkeypatch):
    monkeypatch.setattr(main, "_obey", _raising(ZeroDivisionError("division\nby zero")))
    code, data, said = jarvis("brief")

    assert (code, data) == (1, "")
    assert said == (
        "jarvis: this is a bug (ZeroDivisionError: division by zero): set JARVIS_DEBUG=1 to see where, and please report it\n"
    )


def test_with_jarvis_debug_the_error_is_raised(jarvis, monkeypatch):
    monkeypatch.setenv("JARVIS_DEBUG", "1")
    monkeypatch.setattr(main, "_obey", _raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        jarvis("brief")


def test_a_reader_that_has_left_ends_the_command_without_a_word():
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, "-m", "console.main", "--help"]
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, cwd=HOME, check=False)
    os.close(writing)

    assert (done.returncode, done.stderr) == (1, b"")


def test_the_help_loads_no_room():
    program = (
        "import sys; from console.main import run; run(['--help']); "
        "sys.exit(str(sorted({'workers', 'mesh', 'workflow', 'bus', 'redis', 'celery', 'rich'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_init_writes_the_template_and_it_can_be_read(jarvis, empty_folder):
    from workers.settings import Settings

    assert jarvis("init")[0] == 0
    text = (empty_folder / "jarvis.toml").read_text()
    assert "[[feeds]]" in text
    assert Settings.load().config == Path("jarvis.toml")


def test_init_does_not_replace_a_file_unless_it_is_told_to(jarvis, empty_folder):
    (empty_folder / "jarvis.toml").write_text("# mine\n")

    code, _, said = jarvis("init")
    assert (code, said.count("\n")) == (2, 1)
    assert "--force" in said
    assert (empty_folder / "jarvis.toml").read_text() == "# mine\n"

    assert jarvis("init", "--force")[0] == 0
    assert "[[feeds]]" in (empty_folder / "jarvis.toml").read_text()


def test_init_says_where_it_cannot_write(jarvis, monkeypatch, tmp_path):
    monkeypatch.setattr(console.commands.init, "CONFIG", tmp_path / "nowhere" / "jarvis.toml")
    code, _, said = jarvis("init")

    assert code == 1
    assert "cannot be written (No such file or directory)" in said


def _raising(error):
    def raise_it(arguments):
        raise error

    return raise_it
