"""The `jarvis` command in processes of its own, in an empty folder, and the means to see what is left of it."""

import contextlib
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FOLDER = "JARVIS_TEST_FOLDER"
PATIENCE = 90.0


@dataclass
class Command:
    """A running `jarvis`, with its output in files."""

    popen: subprocess.Popen[bytes]
    out: Path
    err: Path

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def ended(self) -> tuple[int, str, str]:
        """Wait for the end. Exit code, data, words."""
        code = self.popen.wait(PATIENCE)
        return code, self.out.read_text(), self.err.read_text()

    @property
    def words(self) -> str:
        return self.err.read_text() if self.err.exists() else ""


class Place:
    """An empty folder to run `jarvis` in."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        self.home = folder / ".jarvis"
        self.agents = folder / "agents"
        self.agents.mkdir(parents=True)
        self._commands: list[Command] = []

    def start(self, *arguments: str, scripted: bool = True, **environment: str) -> Command:
        number = len(self._commands)
        out, err = self.folder / f"{number}.out", self.folder / f"{number}.err"
        with out.open("wb") as data, err.open("wb") as words:
            popen = subprocess.Popen(
                [sys.executable, "-m", "console.main", *arguments],
                cwd=self.folder,
                env={**self._environment(scripted), **environment},
                stdin=subprocess.DEVNULL,
                stdout=data,
                stderr=words,
                start_new_session=True,
            )
        self._commands.append(Command(popen, out, err))
        return self._commands[-1]

    def run(self, *arguments: str, **options: str) -> tuple[int, str, str]:
        return self.start(*arguments, **options).ended()

    def run_on_terminal(self, *arguments: str) -> tuple[int, str]:
        """Run it in front of a person: exit code, and what the terminal was sent."""
        ours, its = pty.openpty()
        popen = subprocess.Popen(
            [sys.executable, "-m", "console.main", *arguments],
            cwd=self.folder,
            env={**self._environment(scripted=True), "TERM": "xterm", "COLUMNS": "100"},
            stdin=its,
            stdout=its,
            stderr=its,
            start_new_session=True,
        )
        self._commands.append(Command(popen, self.folder / "none", self.folder / "none"))
        os.close(its)
        shown = b"".join(_read_all(ours))
        os.close(ours)
        return popen.wait(PATIENCE), shown.decode()

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Poll a condition until it holds; fail saying what did not happen, and what was said instead."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                words = "\n".join(command.words for command in self._commands)
                raise AssertionError(f"not within {PATIENCE:g} s: {what}\n{words}\n{self.log('worker')[-3000:]}")
            time.sleep(0.02)

    def asked(self) -> list[str]:
        file = self.agents / "asked"
        return file.read_text().split() if file.exists() else []

    def hold(self, role: str) -> None:
        (self.agents / f"hold-{role}").touch()

    def release(self, role: str) -> None:
        (self.agents / f"hold-{role}").unlink()

    def fail_once(self, role: str) -> None:
        (self.agents / f"fail-{role}").touch()

    def log(self, role: str) -> str:
        file = self.home / "logs" / f"{role}.log"
        return file.read_text() if file.exists() else ""

    def left(self) -> list[str]:
        """What is still there of the commands that have ended: processes, records of some, socket folders."""
        processes = [f"{process.pid} {command_line(process)}" for process in living(self.folder)]
        return processes + [str(path) for path in (*self.temporary.iterdir(), *self.home.glob("processes/*"))]

    def end(self) -> None:
        for command in self._commands:
            command.popen.kill()
            command.popen.wait()
        for process in living(self.folder):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def _environment(self, scripted: bool) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("JARVIS_")}
        test = {FOLDER: str(self.folder), "TMPDIR": str(self.temporary), "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}"}
        agents = {"JARVIS_MODULES": "workers.definitions,scripted_agents", "JARVIS_TEST_AGENTS": str(self.agents)}
        pace = {"JARVIS_SWEEP_EVERY": "0.2", "JARVIS_HEARTBEAT_EVERY": "1"}
        return {**own, **test, **pace, **(agents if scripted else {})}


def _read_all(terminal: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # Linux says so when the last process in front of a terminal has left it
        while chunk := os.read(terminal, 65536):
            yield chunk


def command_line(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return process.cmdline()
    return []


def living(folder: Path) -> list[psutil.Process]:
    """Every process that was started for this folder and still runs, whatever it has become."""
    return [process for process in psutil.process_iter() if _belongs(process, folder)]


def _belongs(process: psutil.Process, folder: Path) -> bool:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        # The server writes its title over its environment; its working directory gives it away.
        return process.environ().get(FOLDER) == str(folder) or Path(process.cwd()).is_relative_to(folder)
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return False


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    # Short, so that a socket folder in it has a path that fits into an address.
    temporary = Path(tempfile.mkdtemp(prefix="jt-"))
    made = Place(tmp_path / "place", temporary)
    yield made
    made.end()
    shutil.rmtree(temporary)
