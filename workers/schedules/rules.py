"""From a rule and a zone to moments: pure, and right on the two days of a year on which clocks change.

- A local time that does not exist happens that much later: 02:30 at 03:30 when an hour is left out.
- A local time that comes twice happens the first time, unless the rule counts minutes or hours (``*``): then both times.
- An interval knows no clocks: it is counted in seconds since 1970.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from workers.schedules.cron import Days, parse_cron

__all__ = ["Every", "Rule", "Slot", "WallTimes", "moments_of"]

HORIZON = 9 * 366
"""Days in which a rule must happen at least once: a 29th of February can be eight years away."""
REACH = 2
"""Days by which a left-out time may come after its day: a zone may leave out a whole one."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Slot:
    """One occurrence in time: the moment (UTC), and the local time that it stands for, without a zone."""

    at: dt.datetime
    local: dt.datetime

    @property
    def key(self) -> str:
        """The moment as part of a workflow id. The two passes of a repeated hour differ."""
        return f"{self.at:%Y%m%dT%H%M%SZ}"


@dataclass(frozen=True, slots=True)
class Every:
    """An interval in seconds."""

    seconds: int

    @property
    def text(self) -> str:
        """The rule as one may write it."""
        return f"every {self.seconds} s"

    @property
    def words(self) -> str:
        """The rule for people."""
        for size, unit in ((3600, "hour"), (60, "minute")):
            if self.seconds % size == 0:
                count = self.seconds // size
                return f"every {unit}" if count == 1 else f"every {count} {unit}s"
        return f"every {self.seconds} seconds"

    def next(self, after: dt.datetime, zone: ZoneInfo) -> Slot | None:
        """The first slot after a moment."""
        return self._slot(self._count(after) + 1, zone)

    def previous(self, at: dt.datetime, zone: ZoneInfo) -> Slot | None:
        """The last slot at or before a moment."""
        return self._slot(self._count(at), zone)

    def _count(self, at: dt.datetime) -> int:
        return (at - _EPOCH) // dt.timedelta(seconds=self.seconds)

    def _slot(self, count: int, zone: ZoneInfo) -> Slot:
        at = _EPOCH + dt.timedelta(seconds=count * self.seconds)
        return Slot(at, at.astimezone(zone).replace(tzinfo=None))


@dataclass(frozen=True, slots=True)
class WallTimes:
    """Times of day, as the clock on the wall shows them, on every day or on those that match."""

    text: str
    words: str
    times: tuple[dt.time, ...]
    days: Days | None = None
    both_passes: bool = False
    """Whether a time that comes twice happens twice."""

    @classmethod
    def daily(cls, at: dt.time) -> "WallTimes":
        """Once a day."""
        shown = at.isoformat("seconds" if at.second else "minutes")
        return cls(f"at {shown}", f"every day at {shown}", (at,))

    @classmethod
    def cron(cls, expression: str) -> "WallTimes":
        """By a cron expression. Raises ValueError in one line."""
        meant = parse_cron(expression)
        text = f"cron {' '.join(expression.lower().split())}"
        return cls(text, text, meant.times, meant.days, both_passes=meant.runs_on)

    def next(self, after: dt.datetime, zone: ZoneInfo) -> Slot | None:
        """The first slot after a moment; None when there is none within `HORIZON`."""
        found: Slot | None = None
        for day in self._days(after, zone, ahead=True):
            if found is not None and day > found.local.date() + REACH * _DAY:
                break
            slot = next((slot for slot in _slots_on(self, zone, day) if slot.at > after), None)
            if slot is not None and (found is None or slot.at <= found.at):
                found = slot
        return found

    def previous(self, at: dt.datetime, zone: ZoneInfo) -> Slot | None:
        """The last slot at or before a moment; None when there is none within `HORIZON`."""
        found: Slot | None = None
        for day in self._days(at, zone, ahead=False):
            if found is not None and day < found.local.date() - REACH * _DAY:
                break
            slot = next((slot for slot in reversed(_slots_on(self, zone, day)) if slot.at <= at), None)
            if slot is not None and (found is None or slot.at > found.at):
                found = slot
        return found

    def _days(self, around: dt.datetime, zone: ZoneInfo, *, ahead: bool) -> Iterator[dt.date]:
        """The days on which something happens, one after the other, from a little beyond the local date of a moment."""
        today = around.astimezone(zone).date()
        for distance in range(-REACH, HORIZON):
            day = today + (distance if ahead else -distance) * _DAY
            if self.days is None or self.days.match(day):
                yield day


Rule = Every | WallTimes


def moments_of(local: dt.datetime, zone: ZoneInfo) -> list[dt.datetime]:
    """The moments (UTC) at which the clocks of a zone show a time: one, two, or the one that stands for none."""
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(dt.UTC) for fold in (0, 1))
    return [first, second] if first < second else [first]


@lru_cache(maxsize=32)
def _slots_on(rule: WallTimes, zone: ZoneInfo, day: dt.date) -> tuple[Slot, ...]:
    """The slots of one local day, in their order. Where a left-out time falls on another slot, the two are one."""
    slots: dict[dt.datetime, Slot] = {}
    for time in rule.times:
        local = dt.datetime.combine(day, time)
        moments = moments_of(local, zone)
        for at in moments if rule.both_passes else moments[:1]:
            slots[at] = Slot(at, local)
    return tuple(slots[at] for at in sorted(slots))
