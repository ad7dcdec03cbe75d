"""When the next briefing is due, by the operator's clock: pure."""

import datetime as dt
from zoneinfo import ZoneInfo

__all__ = ["next_briefing"]


def next_briefing(at: dt.time, zone: ZoneInfo, now: dt.datetime) -> dt.datetime:
    """The next moment after ``now`` at which the operator's clock shows ``at``, in the operator's zone.

    On the day on which clocks are put forward, a time that is left out is that much later.
    """
    today = now.astimezone(zone).date()
    days = (dt.datetime.combine(today + dt.timedelta(days=ahead), at, zone) for ahead in (0, 1, 2))
    moments = [day.astimezone(dt.UTC).astimezone(zone) for day in days]
    return next(moment for moment in moments if moment > now)
