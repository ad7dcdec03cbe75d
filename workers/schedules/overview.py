"""What there is to say about each schedule: how its last slot went, and when the next one is."""

import datetime as dt
from dataclasses import dataclass

from workers.composition import Runtime
from workers.schedules.catalogue import Scheduled, scheduled
from workers.schedules.cursor import Cursor, CursorStore

__all__ = ["LastOccurrence", "ScheduleView", "overview"]


@dataclass(frozen=True, slots=True)
class LastOccurrence:
    """The slot that was begun last. ``outcome`` is the status of its run, "starting" before there is one, or "not kept"."""

    slot: dt.datetime
    workflow_id: str
    late: bool
    outcome: str


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """One schedule. Moments are in its zone; ``rule`` is in words."""

    name: str
    workflow: str
    rule: str
    zone: str
    after_downtime: str
    last: LastOccurrence | None
    next: dt.datetime | None


def overview(runtime: Runtime, now: dt.datetime) -> list[ScheduleView]:
    """All schedules of a mesh as they stand."""
    return [_view(runtime, one, now) for one in scheduled(runtime.settings)]


def _view(runtime: Runtime, one: Scheduled, now: dt.datetime) -> ScheduleView:
    schedule = one.schedule
    cursor = CursorStore(runtime.store, schedule).read()
    # An interval that has never been looked at has no slot before its first one has passed in full.
    following = schedule.next(now if cursor is None else max(now, cursor.at))
    return ScheduleView(
        name=schedule.name,
        workflow=schedule.workflow,
        rule=schedule.rule.words,
        zone=schedule.zone.key,
        after_downtime=schedule.after_downtime.value,
        last=None if cursor is None else _last(runtime, one, cursor),
        next=None if following is None else following.at.astimezone(schedule.zone),
    )


def _last(runtime: Runtime, one: Scheduled, cursor: Cursor) -> LastOccurrence | None:
    if cursor.workflow_id is None:
        return None
    entry = runtime.store.entry(cursor.workflow_id)
    gone = "starting" if cursor.claimed_at is not None else "not kept"
    outcome = gone if entry is None else entry.status
    return LastOccurrence(cursor.at.astimezone(one.schedule.zone), cursor.workflow_id, cursor.late, outcome)
