"""The in-memory bus: the same contract for the threads of one process. What it holds is lost with the process."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bus.contract import BEGINNING, EVERY_TOPIC, READ_LIMIT, DeadLetter, GroupInfo, Page, Signal
from bus.memory.reader import MemoryReader
from bus.memory.stream import MemoryGroup, MemoryStream
from bus.payload import Draft, check_name, draft
from bus.places import EntryId, Position, parse_entry, start_text
from bus.publishing import Written, lateness, outcome
from bus.reading import Entry, read_page
from bus.streams import STREAMS, Stream, streams_for
from bus.topics import check_patterns

__all__ = ["InMemorySignalBus"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class InMemorySignalBus:
    """`bus.contract.SignalBus` in memory. ``now`` is its clock: times of publication, retries and takeovers follow it."""

    def __init__(self, now: Callable[[], datetime] = _utc_now) -> None:
        self._now = now
        self._changed = threading.Condition()
        self._streams = {stream.name: MemoryStream(stream) for stream in STREAMS}

    def publish(self, id: str, topic: str, payload: Mapping[str, Any], *, strict: bool = False) -> Signal:  # noqa: A002
        """See `bus.contract.SignalBus.publish`."""
        return self.publish_many([Signal(id, topic, payload)], strict=strict)[0]

    def publish_many(self, signals: Sequence[Signal], *, strict: bool = False) -> list[Signal]:
        """See `bus.contract.SignalBus.publish_many`."""
        drafts = [draft(signal) for signal in signals]
        with self._changed:
            written = [self._add(one) for one in drafts]
            self._changed.notify_all()
        return [outcome(one, entry, strict=strict) for one, entry in zip(drafts, written, strict=True)]

    def read(self, topics: Sequence[str] = EVERY_TOPIC, after: str | None = None, limit: int = READ_LIMIT) -> Page:
        """See `bus.contract.SignalBus.read`."""
        with self._changed:
            return read_page(self._scan, topics, after, limit)

    def position(self) -> str:
        """See `bus.contract.SignalBus.position`."""
        with self._changed:
            return str(Position({name: stream.last for name, stream in self._streams.items()}))

    def join(
        self,
        group: str,
        consumer: str,
        *,
        topics: Sequence[str] = EVERY_TOPIC,
        start: str | datetime = BEGINNING,
        takeover_after: float,
    ) -> MemoryReader:
        """See `bus.contract.SignalBus.join`."""
        return MemoryReader(
            [self._streams[stream.name] for stream in streams_for(check_patterns(topics))],
            self._changed,
            self._now,
            group=check_name("the name of a group", group),
            consumer=check_name("the name of a consumer", consumer),
            start=start_text(start),
            takeover_after=takeover_after,
        )

    def groups(self) -> list[GroupInfo]:
        """See `bus.contract.SignalBus.groups`."""
        with self._changed:
            names = sorted({name for stream in self._streams.values() for name in stream.groups})
            return [self._info(name) for name in names]

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """See `bus.contract.SignalBus.dead_letters`."""
        with self._changed:
            letters = [letter for _, held in self._places(group) for letter in held.dead.values()]
        return sorted(letters, key=lambda letter: letter.died_at)

    def replay(self, group: str, entry_ids: Sequence[str]) -> int:
        """See `bus.contract.SignalBus.replay`."""
        wanted = {parse_entry(text) for text in entry_ids}
        with self._changed:
            replayed = [self._replay(stream, held, wanted) for stream, held in self._places(group)]
            self._changed.notify_all()
        return sum(replayed)

    def discard(self, group: str, entry_ids: Sequence[str]) -> int:
        """See `bus.contract.SignalBus.discard`."""
        wanted = {parse_entry(text) for text in entry_ids}
        with self._changed:
            return sum(_discard(stream, held, wanted) for stream, held in self._places(group))

    def _add(self, one: Draft) -> Written:
        written, late = self._streams[one.stream.name].add(one, self._now())
        for group, dropped in late.items():
            warning = draft(lateness(one.stream, group, self._now(), dropped=dropped))
            self._streams[warning.stream.name].add(warning, self._now())
        return written

    def _scan(self, stream: Stream, after: EntryId) -> Iterator[Entry]:
        held = self._streams[stream.name]
        return ((entry, stream.name, held.signal(entry)) for entry in held.after(after))

    def _places(self, group: str) -> list[tuple[MemoryStream, MemoryGroup]]:
        return [(stream, stream.groups[group]) for stream in self._streams.values() if group in stream.groups]

    def _info(self, name: str) -> GroupInfo:
        places = self._places(name)
        unread = [entry for stream, group in places for entry in stream.after(group.reached)]
        pending = [entry for _, group in places for entry in group.pending]
        taken = {consumer: at for _, group in places for consumer, at in group.consumers.items()}
        return GroupInfo(
            name,
            unread=len(unread),
            pending=len(pending),
            retrying=sum(len(group.retries) for _, group in places),
            dead=sum(len(group.dead) for _, group in places),
            oldest_unread=min(unread).time if unread else None,
            oldest_pending=min(pending).time if pending else None,
            consumers=len(taken),
            idle=(self._now() - max(taken.values())).total_seconds() if taken else None,
        )

    def _replay(self, stream: MemoryStream, group: MemoryGroup, wanted: set[tuple[str, EntryId]]) -> int:
        chosen = [entry for entry in group.dead if (stream.bounds.name, entry) in wanted and stream.signal(entry)]
        for entry in chosen:
            del group.dead[entry]
            group.retries[entry] = (self._now(), 0)
        return len(chosen)


def _discard(stream: MemoryStream, group: MemoryGroup, wanted: set[tuple[str, EntryId]]) -> int:
    chosen = [entry for entry in group.dead if (stream.bounds.name, entry) in wanted]
    for entry in chosen:
        del group.dead[entry]
    return len(chosen)
