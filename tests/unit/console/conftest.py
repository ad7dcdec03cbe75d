"""The `jarvis` command in this process, in an empty folder, with nothing of the machine's settings."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from console.main import run

Jarvis = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("JARVIS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def jarvis(capsys: pytest.CaptureFixture[str]) -> Jarvis:
    """Return a function that gives the exit code, the data and the words of a command."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call
