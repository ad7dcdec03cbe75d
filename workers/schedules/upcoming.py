"""When the next briefing is due, by the operator's clock: pure."""

import datetime as dt
from zoneinfo import ZoneInfo

from workers.schedules import WallTimes

__all__ = ["next_briefing"]


def next_briefing(at: dt.time, zone: ZoneInfo, now: dt.datetime) -> dt.datetime:
    """The next moment after ``now`` at which the operator's clock shows ``at``, in the operator's zone.

    On the day on which clocks are put forward, a time that is left out is that much later.
    """
    slot = WallTimes.daily(at).next(now, zone)
    if slot is None:
        raise ValueError(f"there is no day after {now}")  # every day has its time
    return slot.at.astimezone(zone)
