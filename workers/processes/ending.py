"""Ends recorded processes with all that they started: asked first, by force after their grace, foundations last."""

import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from workers.errors import ProcessRemainsError
from workers.processes.family import ancestors, family, leader
from workers.processes.identity import alive
from workers.processes.ledger import Entry, Ledger
from workers.processes.table import Process, read_table

POLL_SECONDS = 0.05
FORCE_SECONDS = 10.0
"""How long a killed process may take to go before that is an error."""


def never() -> bool:
    """Say that there is no hurry."""
    return False


@dataclass(frozen=True, slots=True)
class Ending:
    """How processes are ended: no grace is longer than `patience` (s), and there is none once `hurry()` is true."""

    ledger: Ledger
    patience: float = float("inf")
    hurry: Callable[[], bool] = never
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def end(self, entries: Collection[Entry]) -> list[Entry]:
        """End these processes, forget their records and return those of which something still lived.

        Raise `ProcessRemainsError` for one that outlives force.
        """
        upper = [entry for entry in entries if not entry.foundation]
        return self._end_together(upper) + self._end_together([entry for entry in entries if entry.foundation])

    def _end_together(self, entries: Sequence[Entry]) -> list[Entry]:
        begun = self.clock()
        living = self._living(entries)
        found = [entry for entry, _ in living]
        for entry, members in living:
            _ask(entry, members)
        while living:
            waited = self.clock() - begun
            for entry, members in living:
                self._force(entry, members, waited)
            self.sleep(POLL_SECONDS)
            living = self._living([entry for entry, _ in living])
        return found

    def _living(self, entries: Sequence[Entry]) -> list[tuple[Entry, list[Process]]]:
        """Return the entries of which something lives, and forget the others."""
        table = read_table()
        spare = ancestors(os.getpid(), table)
        families = [(entry, family(entry, table, spare)) for entry in entries]
        for entry, members in families:
            if not members:
                self.ledger.forget(entry)
        return [(entry, members) for entry, members in families if members]

    def _force(self, entry: Entry, members: list[Process], waited: float) -> None:
        grace = min(entry.grace, self.patience)
        leaderless = all(member.pid != entry.pid for member in members)
        if waited > grace + FORCE_SECONDS:
            pids = ", ".join(str(member.pid) for member in members)
            raise ProcessRemainsError(f"{entry.role} (pid {pids}) does not end, even by force: look at what it waits for.")
        # What has lost its leader has nobody left to tell it to end.
        if leaderless or waited >= grace or self.hurry():
            for member in members:
                send(member, signal.SIGKILL)


def _ask(entry: Entry, members: list[Process]) -> None:
    head = leader(entry, {member.pid: member for member in members})
    if head is not None:
        send(head, signal.SIGTERM)


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to exactly this process, or to none when it has ended and its pid means another one."""
    try:
        if hasattr(os, "pidfd_open"):
            _send_by_handle(process, number)
        elif alive(process.pid, process.started):
            os.kill(process.pid, number)
    except ProcessLookupError:  # it has ended, which is what the signal was for
        return


def _send_by_handle(process: Process, number: signal.Signals) -> None:
    handle = os.pidfd_open(process.pid)
    try:
        # Compared after the handle is open: from here on the handle cannot come to mean another process.
        if alive(process.pid, process.started):
            signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)
