"""The day's events from an iCalendar file or address, on the operator's clock.

All-day events are days, not moments: no zone ever moves them. Times without a zone are the operator's own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path

from mesh.sources.fetch import Fetcher, FetchError
from mesh.sources.ics import Expansion, Occurrence, expand
from mesh.sources.item import Item, Kind, Reading, Remark
from mesh.sources.source import CONTENT_ERRORS
from mesh.sources.window import Window

_SLACK = dt.timedelta(days=1)
"""Asked for around the day, because the libraries compare dates and moments as they are written, not by the zone."""


class CalendarSource:
    """One calendar, at an address or in a file."""

    def __init__(self, name: str, location: str | Path, fetcher: Fetcher) -> None:
        self.name = name
        self._location = location
        self._fetcher = fetcher

    def read(self, window: Window) -> Reading:
        """Return the events of the window's day: the all-day ones, then the others by the hour."""
        try:
            return read_calendar(self.name, self._fetcher.read(self._location).content, window)
        except FetchError as error:
            return Reading.gap(self.name, str(error))


def read_calendar(name: str, content: bytes, window: Window) -> Reading:
    """Return what a calendar has for the window's day. Bad content is a gap or a remark, never an exception."""
    midnight = window.midnight(window.day)
    try:
        expansion = expand(content, midnight - _SLACK, midnight + 2 * _SLACK)
    except CONTENT_ERRORS as error:
        return Reading.gap(name, f"cannot be read as a calendar ({type(error).__name__})")
    today = [_item(name, event, window) for event in expansion.occurrences if _is_today(event, window)]
    return Reading(
        items=tuple(sorted(today, key=_by_hour)),
        remarks=tuple(Remark(name, text) for text in _remarks(expansion)),
    )


def _is_today(event: Occurrence, window: Window) -> bool:
    start, end = _on_clock(event.start, window), _on_clock(event.end, window)
    if isinstance(start, dt.datetime) and isinstance(end, dt.datetime):
        return window.overlaps_day(start, end)
    return start <= window.day < end


def _item(source: str, event: Occurrence, window: Window) -> Item:
    return Item(
        kind=Kind.EVENT,
        text=_title(event),
        source=source,
        key=f"{event.uid}/{event.start.isoformat()}",
        at=_on_clock(event.start, window),
        until=_on_clock(event.end, window),
    )


def _on_clock(moment: dt.datetime | dt.date, window: Window) -> dt.datetime | dt.date:
    """Return a moment on the operator's clock; a day is a day everywhere."""
    return window.local(moment) if isinstance(moment, dt.datetime) else moment


def _title(event: Occurrence) -> str:
    title = event.summary or "(no title)"
    # Meeting links fill the location of many calendars; nobody reads them aloud.
    if event.location and "://" not in event.location:
        title += f", {event.location}"
    if event.cancelled:
        title = f"Cancelled: {title}"
    if event.unknown_zone:
        title += f" (zone unknown: {event.unknown_zone})"
    return title


def _by_hour(item: Item) -> tuple[bool, str, str]:
    begin = item.at.astimezone(dt.UTC).isoformat() if isinstance(item.at, dt.datetime) else ""
    return isinstance(item.at, dt.datetime), begin, item.text


def _remarks(expansion: Expansion) -> Iterable[str]:
    yield from expansion.remarks
    if expansion.unreadable:
        yield f"events that cannot be read, left out: {expansion.unreadable}"
