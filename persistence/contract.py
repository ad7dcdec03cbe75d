"""The contract of a store: partitions of records, changed only by atomic conditional writes.

A partition is a small map from key to bytes. One of its keys, the *condition*, guards the others: every change says "if the
condition still holds these bytes". A change may also set the partition's *index entry*, by which schedulers find what is due
without scanning, and append to *logs*, which outlive the partition. All of that happens in one atomic operation or not at all.

Stores know nothing of workflows. Keys and partitions are text, values are exact bytes: empty, NUL, non-UTF-8, case, trailing
spaces and unicode forms are all kept apart. Text that UTF-8 cannot write (half of a surrogate pair) is refused with ValueError
by every method, before anything is asked or written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

from persistence.text import require_text

__all__ = ["DEFAULT_LIMIT", "IndexEntry", "LogEntry", "Persistence"]

DEFAULT_LIMIT = 100
"""Entries that one page of ``due``, ``find`` or ``read_log`` holds unless told otherwise."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What a scheduler may know of a partition without reading it.

    ``due`` is a finite Unix time in seconds, or None when nothing is to happen by itself. ``name``, ``status``, ``tag`` and
    ``awaits`` (the event that it waits for) can be searched for and hold no NUL. ``summary`` is small text for people and
    listings; no payload belongs there.
    """

    partition: str
    due: float | None = None
    name: str = ""
    status: str = ""
    tag: str | None = None
    summary: str = ""
    awaits: str | None = None

    def __post_init__(self) -> None:
        require_text("the partition", self.partition)
        require_text("the name, status, tag, summary or awaited event", *self._words())
        if "\x00" in f"{self.name}{self.status}{self.tag or ''}{self.awaits or ''}":
            raise ValueError("name, status, tag and awaits of an index entry hold no NUL character: remove it")
        if self.due is not None and not _is_moment(self.due):
            raise ValueError(f"the due time {self.due} is not a moment: use None where nothing is due")

    def _words(self) -> tuple[str | None, ...]:
        return self.name, self.status, self.tag, self.summary, self.awaits

    def require_partition(self, partition: str) -> None:
        """Raise ValueError when the entry is handed in with a write to another partition."""
        if self.partition != partition:
            raise ValueError(f"the index entry of partition {self.partition!r} cannot be written with partition {partition!r}")

    def matches(self, name: str | None, status: str | None, tag: str | None, awaits: str | None = None) -> bool:
        """Whether the entry has each of the given values; None asks nothing."""
        return (
            (name is None or self.name == name)
            and (status is None or self.status == status)
            and (tag is None or self.tag == tag)
            and (awaits is None or self.awaits == awaits)
        )


def _is_moment(due: float) -> bool:
    try:
        return isfinite(due)
    except OverflowError:  # an integer that no float can hold
        return False


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of a log. ``position`` is opaque: hand it back as ``after`` to read on behind this entry."""

    position: str
    data: bytes


class Persistence(Protocol):
    """A store. Every method is synchronous and raises `PersistenceError` when the store fails, never for a lost condition.

    ``index`` is the entry of the partition that is written (ValueError for another's). A ``limit`` is 1 or more.
    """

    def get(self, partition: str, key: str) -> bytes | None:
        """The exact bytes of one record, or None when there is none (an empty value is not None)."""
        ...

    def load(self, partition: str) -> dict[str, bytes]:
        """All records of a partition as they stood at one moment, in one round trip; empty when there is no partition."""
        ...

    def initialize_if_absent(
        self,
        partition: str,
        condition_key: str,
        initial_value: bytes,
        records: Mapping[str, bytes] | None = None,
        index: IndexEntry | None = None,
        append: Sequence[tuple[str, bytes]] = (),
    ) -> bool:
        """Write ``records`` and the condition if the condition is absent; otherwise change nothing and return False.

        ``initial_value`` wins over a record of the same key. Other records that already exist are kept.
        """
        ...

    def write_if_unchanged(
        self,
        partition: str,
        condition_key: str,
        expected_value: bytes,
        records: Mapping[str, bytes],
        delete: Iterable[str] = (),
        index: IndexEntry | None = None,
        append: Sequence[tuple[str, bytes]] = (),
    ) -> bool:
        """Delete and upsert records if the condition holds exactly ``expected_value``; otherwise change nothing, False.

        An absent condition is never equal, not even to empty bytes. Without records it is a pure check of the condition.
        A key both in ``delete`` and in ``records`` ends up written. Whoever wants a lost reply to be settled safely
        changes the condition to bytes that nobody else would write; an append under an unchanged condition is never
        repeated, so that a lost reply raises instead.
        """
        ...

    def delete_if_unchanged(
        self, partition: str, condition_key: str, expected_value: bytes, append: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """Delete the whole partition and its index entry if the condition holds ``expected_value``; otherwise False."""
        ...

    def entry(self, partition: str) -> IndexEntry | None:
        """The index entry of one partition, or None."""
        ...

    def due(self, before: float, limit: int = DEFAULT_LIMIT) -> list[IndexEntry]:
        """Entries whose due time is at or before ``before`` (Unix seconds), the longest due first."""
        ...

    def find(
        self,
        *,
        name: str | None = None,
        status: str | None = None,
        tag: str | None = None,
        awaits: str | None = None,
        limit: int = DEFAULT_LIMIT,
        after: IndexEntry | None = None,
    ) -> list[IndexEntry]:
        """Entries with these values, in the order of their partitions' UTF-8 bytes; ``after`` is the last one returned."""
        ...

    def read_log(self, name: str, after: str | None = None, limit: int = DEFAULT_LIMIT) -> list[LogEntry]:
        """Entries of one log behind the position ``after``; pages read on from a position never miss an entry.

        Entries of one partition come in the order of their writing. Across partitions the order is the store's clock, to
        the millisecond. Raises ValueError for a position that this kind of store never gave.
        """
        ...
