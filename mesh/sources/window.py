"""Which facts belong to a briefing: its local day, and the stretch of time before it that counts as new."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo

DEFAULT_WINDOW_HOURS = 24.0


@dataclass(frozen=True, slots=True)
class Window:
    """The day of a briefing in the operator's zone; `since` up to `until` (aware) is what counts as new."""

    day: dt.date
    since: dt.datetime
    until: dt.datetime
    zone: ZoneInfo

    def local(self, moment: dt.datetime) -> dt.datetime:
        """Return `moment` as the operator's clock shows it; a naive one is taken to be the operator's own time."""
        if moment.tzinfo is None:
            return moment.replace(tzinfo=self.zone)
        return moment.astimezone(self.zone)

    def midnight(self, day: dt.date) -> dt.datetime:
        """Return the instant at which `day` begins in the operator's zone."""
        return dt.datetime.combine(day, dt.time(), self.zone)

    def overlaps_day(self, start: dt.datetime, end: dt.datetime) -> bool:
        """Tell whether something from `start` to `end` (aware, end exclusive) happens on the day."""
        begin, over = _utc(self.midnight(self.day)), _utc(self.midnight(self.day + dt.timedelta(days=1)))
        first, last = _utc(start), _utc(end)
        return begin <= first < over or (first < begin < last)


def briefing_window(day: dt.date, now: dt.datetime, zone: ZoneInfo, *, hours: float = DEFAULT_WINDOW_HOURS) -> Window:
    """Return the window of the briefing for `day`.

    Today's looks back from `now` (aware). A briefing for another day looks back from the beginning of that day.
    """
    today = now.astimezone(zone).date()
    until = now if day == today else dt.datetime.combine(day, dt.time(), zone)
    # Subtracted in UTC: 24 hours are 24 hours also across a change of the clock.
    return Window(day=day, since=_utc(until) - dt.timedelta(hours=hours), until=until, zone=zone)


def _utc(moment: dt.datetime) -> dt.datetime:
    """Return `moment` in UTC, because Python compares times of one zone by the wall clock, not by the instant."""
    return moment.astimezone(dt.UTC)
