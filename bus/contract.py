"""What a signal bus is: the values that travel on it and what each call promises.

A signal says that something is so: a fact with an id of its own. Publishing is idempotent by that id, so whoever is not
sure may publish again. Readers see signals in the order of their entries. Groups each remember their place; `GroupReader`
is all that a consumer needs of a bus, so that every transport shares `bus.consumer`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

__all__ = [
    "BEGINNING",
    "END",
    "EVERY_TOPIC",
    "READ_LIMIT",
    "DeadLetter",
    "Delivery",
    "GroupInfo",
    "GroupReader",
    "Page",
    "Signal",
    "SignalBus",
    "Taken",
]

READ_LIMIT = 100
"""Signals in one page when the reader does not say."""
EVERY_TOPIC = ("#",)
"""The pattern that matches every topic."""
BEGINNING = "beginning"
"""A start for a new group: the oldest signal that the bus still holds."""
END = "end"
"""A start for a new group: what is published after its first take."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One fact. ``payload`` is a JSON object; the last two are set by the bus once it is published.

    ``published_at`` is the server's time, to the millisecond. ``entry_id`` is the place on the bus, opaque to callers, and
    may be given as ``after`` to `SignalBus.read`.
    """

    id: str
    topic: str
    payload: Mapping[str, Any]
    published_at: datetime | None = None
    entry_id: str | None = None


class Page(list[Signal]):
    """Signals that were read, and the ``position`` behind everything that was looked at to find them."""

    def __init__(self, signals: Iterable[Signal], position: str) -> None:
        super().__init__(signals)
        self.position = position


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """How far one group is, over all its streams.

    ``unread`` signals wait for their first delivery, of any topic; ``pending`` ones are in the hands of a consumer;
    ``retrying`` ones failed and wait for their next try; ``dead`` ones failed for good. The oldest of those that wait and of
    those in hand are told by their time of publication, None where there are none.

    ``consumers`` counts those that have not left and are not yet known to be dead. ``idle`` is how many seconds ago any of them
    last took (with servers before 7.2: last got something); None when there are none.
    """

    name: str
    unread: int
    pending: int
    retrying: int
    dead: int
    oldest_unread: datetime | None = field(default=None, compare=False)
    oldest_pending: datetime | None = field(default=None, compare=False)
    consumers: int = field(default=0, compare=False)
    idle: float | None = field(default=None, compare=False)

    @property
    def abandoned(self) -> bool:
        """Whether signals wait, or are held, and no consumer is there who could handle them."""
        return self.consumers == 0 and self.unread + self.pending + self.retrying > 0


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A signal that a group gave up: the last error, the number of deliveries, and when it was given up."""

    signal: Signal
    error: str
    attempts: int
    died_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """A signal in the hands of a reader; ``attempt`` counts its deliveries to the group, this one included."""

    signal: Signal
    attempt: int


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of one take.

    ``lost`` counts deliveries whose signal the bus no longer holds or cannot read: they are over.
    """

    deliveries: Sequence[Delivery] = ()
    lost: int = 0


class SignalBus(Protocol):
    """The bus. Every call may raise `BusUnreachableError` where a server is involved, and `BusError` for misuse."""

    def publish(self, id: str, topic: str, payload: Mapping[str, Any], *, strict: bool = False) -> Signal:  # noqa: A002
        """Put a signal on the bus, once: the first publication of an id wins, and every later one returns that first entry.

        Different content under a known id is logged at info, or raises `BusError` when ``strict``. The bus remembers an id
        for longer than it keeps the entry (`bus.streams`), counted from its last publication; content that has left the bus
        can no longer be compared, and the offered content is then returned with the first entry's place and time.

        Raises `BusError` for an id, topic or payload that the bus does not take (`bus.payload`, `bus.topics`).
        """
        ...

    def publish_many(self, signals: Sequence[Signal], *, strict: bool = False) -> list[Signal]:
        """Publish in the given order, as `publish` does, in one trip for each stream (large batches: a few trips).

        Nothing is published when one of them is refused. A trip is atomic, the batch as a whole is not: after an error,
        publish it again.
        """
        ...

    def read(self, topics: Sequence[str] = EVERY_TOPIC, after: str | None = None, limit: int = READ_LIMIT) -> Page:
        """The next signals that match one of the topic patterns, oldest first, without any group.

        ``after`` is a position (`position`, or that of an earlier page), from which nothing is missed and nothing repeated,
        or the entry id of a signal, which is exact in the signal's own stream and a moment in the others. Without it the
        page starts at the oldest signal.
        """
        ...

    def position(self) -> str:
        """The place behind everything published so far, in all streams: reading after it gives what comes later.

        `bus.latest_position` finds the latest of several.
        """
        ...

    def join(
        self,
        group: str,
        consumer: str,
        *,
        topics: Sequence[str] = EVERY_TOPIC,
        start: str | datetime = BEGINNING,
        takeover_after: float,
    ) -> "GroupReader":
        """A reader for one consumer of a group. No call to the server yet: the first take creates a group that is new.

        ``start`` places a new group: `BEGINNING`, `END`, a position, an entry id, or a time with its zone (what was published
        then or later, by the server's clock); a group that exists keeps its place.
        ``topics`` choose the streams to read; the reader still delivers every topic of these. ``takeover_after`` is in
        seconds: what a consumer was given and left alone for so long goes to another one.
        """
        ...

    def groups(self) -> list[GroupInfo]:
        """Every group by name, and how far it is."""
        ...

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """What a group gave up and has not replayed, oldest first; empty for an unknown group.

        The newest `bus.failure.DEAD_LIMIT` of each stream are kept.
        """
        ...

    def replay(self, group: str, entry_ids: Sequence[str]) -> int:
        """Give dead letters, named by the entry ids of their signals, to their group again, with a fresh count of deliveries.

        Returns how many. An id that is not among the dead letters is passed over, so that replaying twice is harmless; a
        signal that the bus no longer holds stays a dead letter, and is passed over too. `bus.chosen` finds the letters of a
        topic, an error or a time.
        """
        ...

    def discard(self, group: str, entry_ids: Sequence[str]) -> int:
        """Delete dead letters, named by the entry ids of their signals, for good. Returns how many; others are passed over."""
        ...


class GroupReader(Protocol):
    """One consumer of one group. Calls raise `BusUnreachableError` and `BusError`.

    One thread takes and waits; outcomes may be told from several.

    A delivery belongs to the reader that took it until it is acknowledged, put off, given back or buried, or until it was
    left alone for the takeover time: then any reader of the group may take it. A call about a delivery that another reader
    has in hand by then changes nothing, except that an acknowledgement counts: handled is handled. Every call
    may be repeated when its outcome is unknown.
    """

    def take(self, limit: int) -> Taken:
        """Take up to ``limit`` retries that are due, as many signals not yet read, and one delivery left alone by others.

        The one left alone comes last: it may have killed its consumer, and should it kill this one too, nothing else is in
        hand by then whose deliveries would be counted in vain.

        A group that is missing, since it is new or its server lost its data, is created: at its start, or at the place that
        this reader had reached. What a take without answer took comes back after the takeover time.
        """
        ...

    def wait(self, seconds: float) -> None:
        """Return when there may be a new signal, at the latest after so many seconds. Retries do not end the wait."""
        ...

    def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """These are done."""
        ...

    def retry(self, delivery: Delivery, delay: float) -> None:
        """This one failed: deliver it again, to whoever takes then, after ``delay`` seconds. Others do not wait for it."""
        ...

    def give_back(self, deliveries: Sequence[Delivery], delay: float = 0.0) -> None:
        """These were not looked at: deliver them again after ``delay`` seconds, to whoever takes then, without counting it."""
        ...

    def bury(self, delivery: Delivery, error: str) -> None:
        """This one failed for good: make it a dead letter of the group."""
        ...

    def leave(self) -> None:
        """This consumer is over; it is forgotten unless something is still in its hands. The group keeps its place.

        Consumers that died without leaving are forgotten by the others once what they held was taken over.
        """
        ...
