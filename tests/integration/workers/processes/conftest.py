"""Owners in processes of their own, which a test may kill, and the means to see what is left of them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

SCRIPTS = Path(__file__).parent / "scripts"
ROOT = Path(__file__).parents[4]
FOLDER = "JARVIS_TEST_FOLDER"
DEADLINE_SECONDS = 20.0


class Owner:
    """A running `owner.py` for one data folder."""

    def __init__(self, folder: Path, *roles: str) -> None:
        self.folder = folder
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder.parent), FOLDER: str(folder)}
        argv = [sys.executable, str(SCRIPTS / "owner.py"), str(folder), *roles]
        # A session of its own: what a test sends to the group of the owner must not reach the tests.
        self.process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def told(self, name: str) -> Any:
        """Wait for what the owner tells under this name."""
        assert self.process.stdout
        for line in self.process.stdout:
            if name in (content := json.loads(line)):
                return content[name]
        raise AssertionError(f"the owner ended without telling {name!r}")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)

    def kill(self, *, guardian: bool = False) -> None:
        """Kill the owner at once, and its guardian before it where asked."""
        if guardian:
            for process in self.guardians():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.kill()
        self.process.wait()

    def guardians(self) -> list[psutil.Process]:
        return [process for process in living(self.folder) if "guardian.py" in " ".join(command(process))]


def command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return process.cmdline()
    return []


def living(folder: Path) -> list[psutil.Process]:
    """Return every process that the owners of this folder started and that still runs, whatever it has become."""
    return [process for process in psutil.process_iter() if _belongs(process, folder)]


def _belongs(process: psutil.Process, folder: Path) -> bool:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        # The server writes its title over its environment; its working directory gives it away.
        return process.environ().get(FOLDER) == str(folder) or Path(process.cwd()).is_relative_to(folder)
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return False


def eventually(condition: Callable[[], object], seconds: float = DEADLINE_SECONDS) -> bool:
    """Wait until something is the case, and tell whether it came to be."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".jarvis"


@pytest.fixture
def start_owner(folder: Path) -> Iterator[Callable[..., Owner]]:
    """Return a function that starts an owner of the test's folder; whatever is left at the end is killed."""
    owners: list[Owner] = []

    def start(*roles: str) -> Owner:
        owners.append(Owner(folder, *roles))
        return owners[-1]

    yield start
    for owner in owners:
        owner.process.kill()
        owner.process.wait()
        assert owner.process.stdout
        owner.process.stdout.close()
    for process in living(folder):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.fixture
def parent_role(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that gives the role of a process with three children, as `owner.py` takes it."""
    return lambda name: f"{name}={SCRIPTS / 'parent.py'},{tmp_path / name}"


@pytest.fixture
def pids_of(tmp_path: Path) -> Callable[[str], list[int]]:
    """Return a function that waits for such a family and gives its pids, the parent first."""

    def pids(name: str) -> list[int]:
        assert eventually((tmp_path / name).exists)
        return [int(pid) for pid in (tmp_path / name).read_text().split()]

    return pids


@pytest.fixture
def living_of(folder: Path) -> Callable[[], list[str]]:
    """Return a function that names what still runs for the test's folder."""
    return lambda: [f"{process.pid} {command(process)}" for process in living(folder)]


@pytest.fixture
def wait_until() -> Callable[..., bool]:
    return eventually


@pytest.fixture
def scripts() -> Path:
    return SCRIPTS
