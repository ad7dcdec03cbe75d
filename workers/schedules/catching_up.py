"""Which slots are started now, and which of them are late: pure."""

import datetime as dt
from itertools import islice

from workers.schedules.rules import Every, Slot
from workers.schedules.schedule import AfterDowntime, Schedule

__all__ = ["LATE_AFTER", "first_moment", "is_late", "slots_to_start"]

LATE_AFTER = 60
"""Seconds after its slot from which on a start is late."""


def is_late(slot: Slot, now: dt.datetime) -> bool:
    """Whether a slot that is started now is started late."""
    return (now - slot.at).total_seconds() > LATE_AFTER


def slots_to_start(schedule: Schedule, after: dt.datetime, now: dt.datetime) -> list[Slot]:
    """The slots after ``after`` that are started now, the oldest first. Of older ones nothing will come."""
    passed = schedule.backwards(now, after)
    match schedule.after_downtime:
        case AfterDowntime.SKIP:
            return [slot for slot in islice(passed, 1) if not is_late(slot, now)]
        case AfterDowntime.LATEST:
            return list(islice(passed, 1))
        case AfterDowntime.ALL:
            return list(islice(passed, schedule.at_most))[::-1]


def first_moment(schedule: Schedule, now: dt.datetime) -> dt.datetime:
    """From when on a schedule counts that is seen for the first time. An interval passes once in full before its first slot."""
    return now + dt.timedelta(seconds=schedule.rule.seconds) if isinstance(schedule.rule, Every) else now
