"""Time as a parameter, so that tests never sleep."""

import datetime as dt
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Whoever knows the time."""

    def now(self) -> dt.datetime:
        """The present moment, aware."""
        ...


class SystemClock:
    """The clock of this machine, in UTC."""

    def now(self) -> dt.datetime:
        """See `Clock.now`."""
        return dt.datetime.now(dt.UTC)


class ManualClock:
    """A clock that moves only when told to. ``start`` is an aware datetime."""

    def __init__(self, start: dt.datetime) -> None:
        if start.tzinfo is None:
            raise ValueError("the clock needs an aware datetime: give it a time zone")
        self._now = start

    def now(self) -> dt.datetime:
        """See `Clock.now`."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock on."""
        self._now += dt.timedelta(seconds=seconds)
