"""From the bytes of an iCalendar file to the occurrences in a stretch of time.

icalendar parses and recurring-ical-events expands. What they make of some real calendars is mended before they are asked
(`_mend`); an event that they cannot read is counted and does not take the others with it.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast
from zoneinfo import ZoneInfo

import recurring_ical_events
from icalendar import Calendar, Component, vDDDTypes, vRecur, vText
from icalendar.timezone import tzp

from mesh.sources.source import CONTENT_ERRORS
from mesh.sources.text import clean

_CALENDAR_ZONE = "X-WR-TIMEZONE"
_UNKNOWN_ZONE = "X-JARVIS-UNKNOWN-ZONE"
_TOO_OFTEN = frozenset({"SECONDLY", "MINUTELY"})

# icalendar keeps the zones that calendars define in one table for the process, first come, first kept. Two calendars may
# define "Customized Time Zone" differently, so each is parsed alone, with an empty table.
_parsing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event on one day. `start` and `end` are dates for all-day events, naive where the file names no known zone."""

    uid: str
    summary: str
    location: str
    cancelled: bool
    start: dt.datetime | dt.date
    end: dt.datetime | dt.date
    unknown_zone: str | None


@dataclass(frozen=True, slots=True)
class Expansion:
    """The occurrences found, how many events could not be read, and what was done to the calendar on the way."""

    occurrences: tuple[Occurrence, ...]
    unreadable: int
    remarks: tuple[str, ...]


def expand(content: bytes, start: dt.datetime, end: dt.datetime) -> Expansion:
    """Return what touches `start` to `end` (aware). Raises one of `CONTENT_ERRORS` for what is not a calendar at all."""
    calendars = _parse(content)
    remarks = [remark for calendar in calendars for remark in _mend(calendar)]
    found: list[Occurrence] = []
    unreadable = 0
    for calendar in calendars:
        occurrences, failed = _expand_or_split(calendar, start, end)
        found += occurrences
        unreadable += failed
    return Expansion(tuple(found), unreadable, tuple(remarks))


def _parse(content: bytes) -> list[Component]:
    """Return the calendars in the file. Events that stand alone, as in a mail, get a calendar around them."""
    with _parsing:
        tzp.use_default()
        roots = cast("list[Component]", Calendar.from_ical(content, multiple=True))
    if not roots:
        raise ValueError("there is no calendar in it")
    return [root if root.name == "VCALENDAR" else _around([root]) for root in roots]


def _around(components: Iterable[Component]) -> Component:
    calendar = Calendar()
    for component in components:
        calendar.add_component(component)
    return calendar


def _expand_or_split(calendar: Component, start: dt.datetime, end: dt.datetime) -> tuple[list[Occurrence], int]:
    """Return the occurrences and the number of series without one. The libraries fail for all if they fail for one."""
    try:
        return _expand(calendar, start, end), 0
    except CONTENT_ERRORS:
        pass
    found: list[Occurrence] = []
    failed = 0
    for series in _series(calendar):
        try:
            found += _expand(series, start, end)
        except CONTENT_ERRORS:
            failed += 1
    return found, failed


def _expand(calendar: Component, start: dt.datetime, end: dt.datetime) -> list[Occurrence]:
    return [_occurrence(event) for event in recurring_ical_events.of(calendar).between(start, end)]


def _series(calendar: Component) -> Iterator[Component]:
    """Yield a calendar for each series: an event, and the changes to single occurrences that share its UID."""
    by_uid: dict[object, list[Component]] = {}
    for event in calendar.walk("VEVENT"):
        by_uid.setdefault(event.get("UID", id(event)), []).append(event)
    for events in by_uid.values():
        series = _around(events)
        if _CALENDAR_ZONE in calendar:
            series[_CALENDAR_ZONE] = calendar[_CALENDAR_ZONE]
        yield series


def _occurrence(event: Component) -> Occurrence:
    return Occurrence(
        uid=clean(_text(event, "UID"), 500),
        summary=clean(_text(event, "SUMMARY")),
        location=clean(_text(event, "LOCATION"), 80),
        cancelled=_text(event, "STATUS").upper() == "CANCELLED",
        start=_time(event, "DTSTART"),
        end=_time(event, "DTEND"),
        unknown_zone=clean(_text(event, _UNKNOWN_ZONE), 80) or None,
    )


def _values(event: Component, name: str) -> list[Any]:
    """Return the values of a property: icalendar gives one, a list where it is repeated, or none."""
    value = cast("Any", event).get(name, [])
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _text(event: Component, name: str) -> str:
    return ", ".join(str(value) for value in _values(event, name))


def _time(event: Component, name: str) -> dt.datetime | dt.date:
    """Return a time of an expanded event. Raises TypeError for a period, a time without a day, or nothing."""
    for value in _values(event, name):
        if isinstance(value, vDDDTypes) and isinstance(value.dt, dt.date):
            return value.dt
    raise TypeError(f"{name} is not a date")


# What real calendars need before they can be expanded.


def _mend(calendar: Component) -> list[str]:
    """Change `calendar` in place into what the libraries read correctly, and return what the reader should know."""
    remarks = _mend_calendar_zone(calendar)
    for event in calendar.walk("VEVENT"):
        _mark_unknown_zone(event)
        _include_last_day(event)
    if restless := [event for event in calendar.walk("VEVENT") if _repeats_too_often(event)]:
        # Thousands of them a day are no appointments, and expanding them takes minutes.
        calendar.subcomponents = [part for part in calendar.subcomponents if part not in restless]
        remarks.append(f"events that repeat every minute or second, left out: {len(restless)}")
    return remarks


def _mend_calendar_zone(calendar: Component) -> list[str]:
    """Give the calendar's own zone the name that zoneinfo knows; an unknown one would make the library raise."""
    if _CALENDAR_ZONE not in calendar:
        return []
    name = str(calendar.pop(_CALENDAR_ZONE))
    zone = cast("dt.tzinfo | None", tzp.timezone(name))
    if not isinstance(zone, ZoneInfo):
        return [f"the calendar's zone is unknown ({clean(name, 80)}), its times are shown as they stand"]
    calendar[_CALENDAR_ZONE] = zone.key
    return []


def _mark_unknown_zone(event: Component) -> None:
    """Note the name of a zone that nobody knows. icalendar leaves such a time naive and expansion drops the name."""
    for start in _values(event, "DTSTART"):
        if isinstance(start, vDDDTypes) and _is_naive(start.dt) and "TZID" in start.params:
            event.add(_UNKNOWN_ZONE, vText(str(start.params["TZID"])))


def _is_naive(moment: object) -> bool:
    return isinstance(moment, dt.datetime) and moment.tzinfo is None


def _include_last_day(event: Component) -> None:
    """Make an UNTIL that is a bare day last to the end of that day in the event's zone.

    RFC 5545 wants a moment there for an event with an hour; large providers write the day, and recurring-ical-events
    3.8 takes its beginning in UTC, which loses the last occurrence in half of the world.
    """
    for start in _values(event, "DTSTART"):
        if isinstance(start, vDDDTypes) and isinstance(start.dt, dt.datetime):
            for rule in _bounded_rules(event):
                rule["UNTIL"] = [_end_of_day(until, start.dt.tzinfo) for until in rule["UNTIL"]]


def _end_of_day(until: dt.date, zone: dt.tzinfo | None) -> dt.date:
    if isinstance(until, dt.datetime):
        return until
    last = dt.datetime.combine(until, dt.time(23, 59, 59), zone)
    return last.astimezone(dt.UTC) if zone else last


def _repeats_too_often(event: Component) -> bool:
    return any(str(frequency).upper() in _TOO_OFTEN for rule in _rules(event) for frequency in rule.get("FREQ", []))


def _bounded_rules(event: Component) -> list[dict[str, list[Any]]]:
    return [rule for rule in _rules(event) if "UNTIL" in rule]


def _rules(event: Component) -> list[dict[str, list[Any]]]:
    return [cast("dict[str, list[Any]]", rule) for rule in _values(event, "RRULE") if isinstance(rule, vRecur)]
