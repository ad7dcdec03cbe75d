"""Cron expressions: minute, hour, day of the month, month, day of the week. Pure.

A field is ``*``, a number, a range ``1-5``, or one of these with a step ``*/15``; several are joined by commas. A range may go
over the end: the hours ``22-5`` are those of a night. Months and days of the week may be named (``jan``, ``mon``); Sunday is 0
and 7. Where both kinds of day are restricted, either will do, as cron
has always had it.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CronExpression", "Days", "parse_cron"]

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_WEEKDAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_SUNDAY = 7
_HOURS = 24


@dataclass(frozen=True, slots=True)
class Days:
    """Which days match. ``weekdays`` count from Sunday, which is 0."""

    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    """Whether the day of the month or that of the week is enough."""

    def match(self, day: dt.date) -> bool:
        """Whether something happens on this day."""
        in_month, in_week = day.day in self.days, day.isoweekday() % _SUNDAY in self.weekdays
        return day.month in self.months and ((in_month or in_week) if self.either else (in_month and in_week))


@dataclass(frozen=True, slots=True)
class CronExpression:
    """What an expression means. ``runs_on`` says that it counts minutes or hours rather than names times of day."""

    times: tuple[dt.time, ...]
    days: Days
    runs_on: bool


def parse_cron(text: str) -> CronExpression:
    """The meaning of an expression. Raises ValueError in one line that names the field."""
    fields = text.lower().split()
    if len(fields) != 5:
        raise ValueError(
            f"{text!r} has {len(fields)} fields: write minute, hour, day, month and weekday, such as '0 7 * * mon-fri'"
        )
    minute, hour, day, month, weekday = fields
    minutes, hours = _numbers("minute", minute, 0, 59), _numbers("hour", hour, 0, 23)
    days = Days(
        days=_numbers("day", day, 1, 31),
        months=_numbers("month", month, 1, 12, _MONTHS),
        weekdays=frozenset(number % _SUNDAY for number in _numbers("weekday", weekday, 0, _SUNDAY, _WEEKDAYS)),
        either=not day.startswith("*") and not weekday.startswith("*"),
    )
    times = tuple(dt.time(hour, minute) for hour in sorted(hours) for minute in sorted(minutes))
    return CronExpression(times, days, runs_on=minute.startswith("*") or hour.startswith("*") or len(hours) == _HOURS)


def _numbers(field: str, text: str, lowest: int, highest: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if slash and not (step.isascii() and step.isdigit() and int(step) > 0):
            raise ValueError(f"the {field} {part!r} has no step that counts: write it such as */15")
        first, last = _span(field, span, lowest, highest, names or {}, open_ended=bool(slash))
        count = _count(lowest, highest)
        if last < first:
            last += count
        found.update(lowest + (number - lowest) % count for number in range(first, last + 1, int(step) if slash else 1))
    return frozenset(found)


def _count(lowest: int, highest: int) -> int:
    """How many values a field has. Sunday has two numbers."""
    return highest - lowest + (0 if highest == _SUNDAY else 1)


def _span(field: str, text: str, lowest: int, highest: int, names: Mapping[str, int], *, open_ended: bool) -> tuple[int, int]:
    if text == "*":
        # Sunday has two numbers: a step must not count it twice.
        return lowest, highest - 1 if highest == _SUNDAY else highest
    first, dash, last = text.partition("-")
    begin = _number(field, first, lowest, highest, names)
    if not dash:
        return begin, highest if open_ended else begin
    end = _number(field, last, lowest, highest, names)
    if end == 0 and names is _WEEKDAYS:
        end = _SUNDAY  # fri-sun
    return begin, end


def _number(field: str, text: str, lowest: int, highest: int, names: Mapping[str, int]) -> int:
    number = names.get(text, int(text) if text.isascii() and text.isdigit() else -1)
    if not lowest <= number <= highest:
        raise ValueError(f"{text!r} is no {field}: use {lowest} to {highest}")
    return number
