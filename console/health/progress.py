"""Reads how far the work of a mesh has come: what is overdue, which slots were missed, what was not passed on."""

import datetime as dt
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from console.health.work import SILENT_SINCE, ScheduleFacts
from console.working import HEARD_WITHIN
from persistence import PersistenceError
from workers.composition import Runtime
from workers.schedules.catalogue import scheduled
from workers.schedules.cursor import CursorStore
from workers.schedules.schedule import AfterDowntime, Schedule
from workers.signals.beats import WORKER_PREFIX
from workers.signals.deliveries import DeliveryLedger
from workflow.history import HISTORY_LOG, read_line

__all__ = ["behind", "deliveries", "overdue", "schedule_facts", "silent_workers"]

_LINES = 50
"""Lines of history among which one is readable."""


def silent_workers(seen: Mapping[str, dt.datetime], now: dt.datetime) -> tuple[list[str], list[str]]:
    """The workers that were heard within the last hour and are silent: those that live on this machine, those of others."""
    ages = {agent: (now - at).total_seconds() for agent, at in seen.items() if agent.startswith(WORKER_PREFIX)}
    silent = sorted(agent for agent, age in ages.items() if HEARD_WITHIN < age <= SILENT_SINCE)
    here = [agent for agent in silent if _host(agent) == socket.gethostname()]
    return [agent for agent in here if _lives(agent.rpartition(":")[2])], [one for one in silent if one not in here]


def overdue(runtime: Runtime, now: dt.datetime) -> float | None:
    """For how many seconds the run that is due the longest has been due; None when none is."""
    due = runtime.store.due(now.timestamp(), 1)
    return now.timestamp() - due[0].due if due and due[0].due is not None else None


def schedule_facts(runtime: Runtime) -> list[ScheduleFacts]:
    """Each schedule, and the slot that comes after the last one that was begun."""
    return [_schedule_facts(runtime, one.schedule) for one in scheduled(runtime.settings)]


def behind(runtime: Runtime, now: dt.datetime) -> float | None:
    """For how many seconds the oldest line of history has been waiting for the relay; None when none waits."""
    try:
        entries = runtime.store.read_log(HISTORY_LOG, runtime.archive.position(), _LINES)
    except ValueError as wrong:
        raise PersistenceError(f"the place in the log that the archive of runs remembers is damaged: {wrong}") from wrong
    for entry in entries:
        with suppress(PersistenceError):
            return now.timestamp() - read_line(entry).at
    return None


def deliveries(runtime: Runtime) -> list[str]:
    """The signals of which nobody knows whether their alerts arrived."""
    return DeliveryLedger(runtime.deliveries).unknown()


def _schedule_facts(runtime: Runtime, schedule: Schedule) -> ScheduleFacts:
    cursor = CursorStore(runtime.store, schedule).read()
    following = None if cursor is None else schedule.next(cursor.at)
    due = None if following is None else following.at
    return ScheduleFacts(schedule.name, due, skips=schedule.after_downtime is AfterDowntime.SKIP)


def _host(agent: str) -> str:
    return agent.removeprefix(WORKER_PREFIX).rpartition(":")[0]


def _lives(pid: str) -> bool:
    """Whether a worker has this pid. Where the system does not tell what a process is, any will do."""
    try:
        os.kill(int(pid), 0)
        command = Path(f"/proc/{pid}/cmdline")
        return not command.exists() or b"celery" in command.read_bytes()
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
