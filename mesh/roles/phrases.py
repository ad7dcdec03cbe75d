"""Dates, times and counts in words. English whatever the machine's locale."""

from __future__ import annotations

import datetime as dt

from mesh.sources.window import Window

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def long_day(day: dt.date) -> str:
    """Return a day as in "Monday 30 November 2026"."""
    return f"{_DAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def short_day(day: dt.date, window: Window) -> str:
    """Return a day as in "Mon 30 Nov", with the year if it is not that of the briefing."""
    year = "" if day.year == window.day.year else f" {day.year}"
    return f"{_DAYS[day.weekday()][:3]} {day.day} {_MONTHS[day.month - 1][:3]}{year}"


def stamp(at: dt.datetime | dt.date | None, window: Window) -> str:
    """Return when something was or is, on the operator's clock; "undated" if nobody knows."""
    if at is None:
        return "undated"
    if isinstance(at, dt.datetime):
        local = window.local(at)
        return f"{short_day(local.date(), window)} {hour(local)}"
    return short_day(at, window)


def hour(moment: dt.datetime) -> str:
    """Return a time of day as in "07:05"."""
    return f"{moment.hour:02}:{moment.minute:02}"


def span(start: dt.datetime | dt.date | None, end: dt.datetime | dt.date | None, window: Window) -> str:
    """Return from when to when an event of the window's day lasts; other days are named."""
    if isinstance(start, dt.datetime) and isinstance(end, dt.datetime):
        first, last = _on_day(start, window), _on_day(end, window)
        return first if start == end else f"{first} to {last}"
    last_day = end - dt.timedelta(days=1) if end else None
    return f"all day, until {short_day(last_day, window)}" if last_day and last_day > window.day else "all day"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: "no meetings", "1 meeting", "2 meetings"."""
    return f"{number or 'no'} {one if number == 1 else many or one + 's'}"


def listed(parts: list[str]) -> str:
    """Return a list as one says it: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _on_day(moment: dt.datetime, window: Window) -> str:
    local = window.local(moment)
    return hour(local) if local.date() == window.day else stamp(moment, window)
