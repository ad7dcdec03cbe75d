"""Whose a process is: the rules by which a recorded process finds all that it started, and nothing else."""

from collections.abc import Collection, Mapping

from workers.processes.ledger import Entry
from workers.processes.table import Process

Table = Mapping[int, Process]


def leader(entry: Entry, table: Table) -> Process | None:
    """Return the recorded process itself, or None where it has ended or its pid means another one by now."""
    process = table.get(entry.pid)
    return process if process and process.started == entry.started and not process.ended else None


def family(entry: Entry, table: Table, spare: Collection[int] = ()) -> list[Process]:
    """Return the recorded process and all that it started, as far as they live, without the pids to spare.

    A pid is not given to a new process as long as a group or a session bears its number. So while the recorded process is
    there, be it ended and not yet waited for, its whole group is its own. After that the number may have been free for a
    while, and only the mark in the environment proves that a member was started by it. The mark also finds those that
    left for a session of their own.
    """
    first = table.get(entry.pid)
    holds_number = first is not None and first.started == entry.started
    return [
        process
        for process in table.values()
        if not process.ended and process.pid not in spare and _belongs(process, entry, holds_number)
    ]


def _belongs(process: Process, entry: Entry, holds_number: bool) -> bool:
    in_group = entry.pid in (process.group, process.session)
    return process.mark == entry.mark or (holds_number and in_group)


def ancestors(pid: int, table: Table) -> set[int]:
    """Return this pid and those above it, so that a process can spare itself and whoever called it."""
    found: set[int] = set()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid].parent
    return found
