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
        today = [_item(name, event, window) for event in expansion.occurrences if _is_today(event, window)]
    except CONTENT_ERRORS as error:
        return Reading.gap(name, f"cannot be read as a calendar ({type(error).__name__})")
    return Reading(
        items=tuple(sorted(today, key=_by_hour)),
        remarks=tuple(Remark(name, text) for text in _remarks(expansion)),
    )


def _is_today(event: Occurrence, window: Window) -> bool:
    start, end = _times(event, window)
    if isinstance(start, dt.datetime) and isinstance(end, dt.datetime):
        return window.overlaps_day(start, end)
    return start <= window.day < end


def _item(source: str, event: Occurrence, window: Window) -> Item:
    start, end = _times(event, window)
    key = f"{event.uid}/{event.start.isoformat()}"
    return Item(kind=Kind.EVENT, text=_title(event), source=source, key=key, at=start, until=end)


def _times(event: Occurrence, window: Window) -> tuple[dt.datetime | dt.date, dt.datetime | dt.date]:
    """Return start and end on the operator's clock. A day is a day everywhere, and one that ends as it begins is whole.

    Some programs write one of the two as a day and the other as a moment; the start decides.
    """
    start, end = event.start, event.end
    if isinstance(start, dt.datetime):
        moment = end if isinstance(end, dt.datetime) else dt.datetime.combine(end, dt.time(), start.tzinfo)
        return window.local(start), window.local(moment)
    last = end.date() if isinstance(end, dt.datetime) else end
    return start, max(last, start + dt.timedelta(days=1))


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
