"""Times, dates and paths in the words of the person who reads them: pure."""

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

from console.errors import MisuseError

__all__ = ["age", "moment", "next_briefing_line", "parse_date", "parse_since", "shown_path"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_date(text: str) -> dt.date:
    """The date that was typed. Raises `MisuseError`."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise MisuseError(f"{text!r} is not a date: write it as 2026-11-30") from None


def parse_since(text: str, now: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    """The moment that was typed: an age ("90s", "30m", "2h", "1d"), or a date with or without a time. Raises `MisuseError`."""
    number, unit = text[:-1], text[-1:]
    try:
        if unit in _UNITS and number.isascii() and number.isdigit():
            return now - dt.timedelta(seconds=int(number) * _UNITS[unit])
        since = dt.datetime.fromisoformat(text)
        return since if since.tzinfo else since.replace(tzinfo=zone)
    except (ValueError, OverflowError):
        raise MisuseError(f"{text!r} is no time: write an age such as 30m or 2h, or 2026-11-30T07:00") from None


def moment(at: dt.datetime, zone: ZoneInfo) -> str:
    """A moment by the operator's clock, to the second."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}"


def age(seconds: float) -> str:
    """How long ago, in the largest unit that fits."""
    whole = max(0, int(seconds))
    unit = next((unit for unit in reversed(_UNITS) if whole >= _UNITS[unit]), "s")
    return f"{whole // _UNITS[unit]} {unit}"


def next_briefing_line(at: dt.time, zone: ZoneInfo, now: dt.datetime) -> str:
    """When the next briefing is due, with the zone."""
    from workers.schedules.upcoming import next_briefing

    return f"next briefing: {next_briefing(at, zone, now):%A %Y-%m-%d %H:%M} ({zone.key})"


def shown_path(path: Path, here: Path) -> str:
    """A path as short as it can be typed from ``here``."""
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
