"""What a source hands over: dated items, gaps where it could not read, remarks on what it read with care.

All texts in here are plain (no HTML, no Markdown) and have been through `mesh.sources.text.clean`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Kind(StrEnum):
    """What sort of fact an item is; the roles choose its section by it."""

    NEWS = "news"
    NOTE = "note"
    TASK = "task"
    EVENT = "event"
    CHECK = "check"
    MESH = "mesh"


class Severity(IntEnum):
    """How much an item wants to be seen. WARNING and CRITICAL need attention, the most severe first."""

    INFO = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True, slots=True)
class Item:
    """One fact. `key` identifies it within its source, the same on every reading of the same fact.

    `at` is when it happened, begins or falls due: an aware datetime, a date for what has no hour, None when the source
    does not say. `until` is when an event ends (exclusive, of the same type as `at`).
    """

    kind: Kind
    text: str
    source: str
    key: str
    at: dt.datetime | dt.date | None = None
    until: dt.datetime | dt.date | None = None
    link: str | None = None
    severity: Severity = Severity.INFO


@dataclass(frozen=True, slots=True)
class Gap:
    """A source, or a part of one, that could not be read, with the reason in one line."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something the reader should know about a source that was read: repaired, overridden, left out."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading one source, or several added together."""

    items: tuple[Item, ...] = ()
    gaps: tuple[Gap, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @classmethod
    def gap(cls, source: str, reason: str) -> Reading:
        """Return the reading of a source that gave nothing."""
        return cls(gaps=(Gap(source, reason),))

    @classmethod
    def sum(cls, readings: Iterable[Reading]) -> Reading:
        """Return one reading that holds everything in `readings`, in their order."""
        together = list(readings)
        return cls(
            items=tuple(item for reading in together for item in reading.items),
            gaps=tuple(gap for reading in together for gap in reading.gaps),
            remarks=tuple(remark for reading in together for remark in reading.remarks),
        )

    def of(self, *kinds: Kind) -> list[Item]:
        """Return the items of these kinds, in the order they were read."""
        return [item for item in self.items if item.kind in kinds]
