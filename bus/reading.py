"""Reading without a group: several streams as one, filtered by topic, with an exact place to go on from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from typing import TypeVar

from bus.contract import Page, Signal
from bus.errors import BusError
from bus.places import EntryId, Position
from bus.streams import Stream, streams_for
from bus.topics import check_patterns, matches_any

__all__ = ["Entry", "Scan", "earliest", "read_page"]

Entry = tuple[EntryId, str, Signal | None]
"""An entry of a stream: its id, its stream, and its signal, or None where another program wrote something unreadable."""
T = TypeVar("T", datetime, float)
Scan = Callable[[Stream, EntryId], Iterator[Entry]]
"""The entries of a stream after an id, oldest first, fetched as they are asked for."""


def read_page(scan: Scan, topics: Sequence[str], after: str | None, limit: int) -> Page:
    """See `bus.contract.SignalBus.read`. ``scan`` is all that a transport must bring."""
    if limit < 1:
        raise BusError(f"cannot read {limit} signals: ask for 1 or more")
    patterns, position = check_patterns(topics), Position.parse(after)
    found: list[Signal] = []
    entries = merge(*(scan(stream, position.of(stream.name)) for stream in streams_for(patterns)), key=lambda entry: entry[:2])
    for place, stream, signal in entries:
        position = replace(position, places={**position.places, stream: place})
        if signal is not None and matches_any(patterns, signal.topic):
            found.append(signal)
        if len(found) == limit:
            break
    return Page(found, str(position))


def earliest(one: T | None, other: T | None) -> T | None:
    """The lesser of two, where None is neither."""
    return min((value for value in (one, other) if value is not None), default=None)
