"""The owner's side: one object that starts, watches and ends the processes of a data folder."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from workers.errors import ProcessKeepsEndingError
from workers.processes import guardian, restarts
from workers.processes.child import Child, ProcessSpec, ended_how, spawn
from workers.processes.claim import Claim, claim_folder
from workers.processes.ending import Ending
from workers.processes.ledger import Ledger
from workers.processes.logs import open_log, tail
from workers.processes.signals import StopSignals

LOOK_SECONDS = 0.2
LEFTOVER_SECONDS = 3.0
"""The grace of what a dead owner and its guardian left behind."""


def _last_word(spec: ProcessSpec) -> str:
    lines = tail(spec.log) if spec.log else []
    return f": {lines[-1]} (all of it in {spec.log})" if lines else "."


def _silent(_: str) -> None: ...


def _new_mark() -> str:
    return secrets.token_hex(8)


class Supervisor:
    """Owns a data folder and the processes started for it, from `with` to the end of the block.

    On entering it claims the folder (raises `FolderInUseError`, `FolderUnusableError`) and ends what an earlier owner left.
    Until the end of the block the first SIGINT, SIGTERM or SIGHUP raises `StopRequested`, which is a `KeyboardInterrupt`. On
    leaving, however that comes, it ends its processes: all at once, foundations last; another signal then takes the
    grace away. Should the owner be killed, its guardian does the same.

    `say` takes one line for the person in front. All of it is for one thread, and signals are handled if that is the main one.
    """

    def __init__(
        self,
        folder: Path,
        *,
        say: Callable[[str], None] = _silent,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        new_mark: Callable[[], str] = _new_mark,
    ) -> None:
        self.folder = folder.absolute()
        self._pid = os.getpid()
        self._ledger = Ledger(self.folder)
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._new_mark = new_mark
        self._signals = StopSignals()
        self._claim: Claim | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._children: dict[str, Child] = {}
        self._afterwards: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        try:
            self._signals.install()
            self._claim = claim_folder(self.folder, clock=self._clock, sleep=self._sleep)
            self._ledger.open()
            self._end_leftovers()
            self._start_guardian(self._claim)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def log_path(self, role: str) -> Path:
        """Return the usual place for the log of a role."""
        return self.folder / "logs" / f"{role}.log"

    def start(self, spec: ProcessSpec) -> int:
        """Start a process and return its pid.

        A program that cannot be run ends at once with code 127 and says why in its log.
        """
        if spec.role in self._children:
            raise ValueError(f"a process with the role {spec.role!r} was started already")
        return self._spawn(spec, failures=0)

    def exit_code(self, role: str) -> int | None:
        """Return how the process with this role ended, or None while it runs."""
        return self._children[role].process.poll()

    def afterwards(self, act: Callable[[], None]) -> None:
        """Have something done once all processes are gone."""
        self._afterwards.append(act)

    def tend(self) -> None:
        """Look once after every process: start again what ended and has waited long enough.

        Raise `ProcessKeepsEndingError` for one that ended too often in a row.
        """
        self._signals.repeat_lost()
        if self._claim and self._guardian and self._guardian.poll() is not None:
            self._start_guardian(self._claim)
        for child in list(self._children.values()):
            if child.restart_at is not None:
                self._restart_when_due(child, child.restart_at)
            elif (code := child.process.poll()) is not None:
                self._note_end(child, code)

    def watch(self, until: Callable[[], bool]) -> None:
        """Tend until something is the case, or a signal asks to stop."""
        while not until():
            self.tend()
            self._sleep(LOOK_SECONDS)

    def _spawn(self, spec: ProcessSpec, failures: int) -> int:
        self._signals.repeat_lost()
        mark = self._new_mark()
        with self._signals.held():  # a child that was started is always known
            process = spawn(spec, mark, self._ledger)
            self._children[spec.role] = Child(spec, mark, process, self._clock(), failures)
        return process.pid

    def _restart_when_due(self, child: Child, due: float) -> None:
        if self._clock() >= due:
            self._spawn(child.spec, child.failures)

    def _note_end(self, child: Child, code: int) -> None:
        """Clear away what the ended process left, and set its next start."""
        entry = self._ledger.find(child.mark)
        self._ending().end([entry] if entry else [])
        child.failures = restarts.failures_after(child.failures, self._clock() - child.since)
        if restarts.hopeless(child.failures):
            raise ProcessKeepsEndingError(f"{child.spec.role} keeps ending ({ended_how(code)}){_last_word(child.spec)}")
        delay = restarts.delay_after(child.failures)
        child.restart_at = self._clock() + delay
        if child.failures == 1:
            self._say(f"{child.spec.role} ended unexpectedly ({ended_how(code)}); starting it again{_last_word(child.spec)}")

    def _end_leftovers(self) -> None:
        left = self._ending(LEFTOVER_SECONDS).end(self._ledger.entries())
        if left:
            names = ", ".join(f"{entry.role} (pid {entry.pid})" for entry in left)
            self._say(f"Ended what an earlier run left behind: {names}.")

    def _start_guardian(self, claim: Claim) -> None:
        arguments = [sys.executable, "-I", "-S", guardian.__file__, str(os.getpid()), str(self.folder)]
        with self._signals.held(), open_log(self.log_path("guardian")) as log:
            self._guardian = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[claim.lock],
            )

    def _ending(self, patience: float = float("inf")) -> Ending:
        return Ending(self._ledger, patience, self._signals.hurry, self._clock, self._sleep)

    def _stop(self) -> None:
        if os.getpid() != self._pid:  # a fork of the owner came here: the processes are not its own
            return
        self._signals.settle()
        try:
            if self._claim:
                self._stop_children()
                self._leave(self._claim)
        finally:
            self._claim = None
            self._signals.restore()

    def _stop_children(self) -> None:
        for child in self._children.values():
            # Still on its way to its record: it has started nothing yet, and after this it never will.
            if child.process.poll() is None and self._ledger.find(child.mark) is None:
                child.process.kill()
                child.process.wait()
        self._ending().end(self._ledger.entries())
        for child in self._children.values():
            child.process.wait()
        for act in self._afterwards:
            act()

    def _leave(self, claim: Claim) -> None:
        """Give the folder back. The guardian goes first, for it holds the lock too."""
        if self._guardian:
            self._guardian.kill()
            self._guardian.wait()
        claim.release()
