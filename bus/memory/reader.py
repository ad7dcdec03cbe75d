"""One consumer of a group on the in-memory bus."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from bus.contract import BEGINNING, END, DeadLetter, Delivery, Taken
from bus.memory.stream import MemoryGroup, MemoryStream, Pending
from bus.places import EntryId, Position, parse_entry
from bus.streams import stream_of

__all__ = ["MemoryReader"]


Candidate = tuple[MemoryStream, MemoryGroup, EntryId, int]
"""An entry to deliver, with the number of the attempt."""


class MemoryReader:
    """`bus.contract.GroupReader` over streams in memory."""

    def __init__(
        self,
        streams: Sequence[MemoryStream],
        changed: threading.Condition,
        now: Callable[[], datetime],
        *,
        group: str,
        consumer: str,
        start: str,
        takeover_after: float,
    ) -> None:
        self._streams = {stream.bounds.name: stream for stream in streams}
        self._changed = changed
        self._now = now
        self._group = group
        self._consumer = consumer
        self._start = start
        self._position = None if start in (BEGINNING, END) else Position.parse(start)
        self._takeover_after = timedelta(seconds=takeover_after)

    def take(self, limit: int) -> Taken:
        """See `bus.contract.GroupReader.take`."""
        with self._changed:
            self._sign_in()
            deliveries: list[Delivery] = []
            lost = 0
            for stream, group, entry, attempt in [*self._fresh(limit), *self._left_alone()]:
                signal = stream.signal(entry)
                if signal is None:
                    lost += 1
                else:
                    group.pending[entry] = Pending(self._consumer, self._now(), attempt)
                    deliveries.append(Delivery(signal, attempt))
            return Taken(deliveries, lost)

    def wait(self, seconds: float) -> None:
        """See `bus.contract.GroupReader.wait`."""
        with self._changed:
            self._changed.wait_for(self._has_unread, seconds)

    def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """See `bus.contract.GroupReader.acknowledge`."""
        with self._changed:
            for delivery in deliveries:
                group, entry = self._place(delivery)
                group.pending.pop(entry, None)

    def retry(self, delivery: Delivery, delay: float) -> None:
        """See `bus.contract.GroupReader.retry`."""
        with self._changed:
            self._put_off(delivery, delivery.attempt, delay)

    def give_back(self, deliveries: Sequence[Delivery], delay: float = 0.0) -> None:
        """See `bus.contract.GroupReader.give_back`."""
        with self._changed:
            for delivery in deliveries:
                self._put_off(delivery, delivery.attempt - 1, delay)

    def bury(self, delivery: Delivery, error: str) -> None:
        """See `bus.contract.GroupReader.bury`."""
        with self._changed:
            group, entry = self._place(delivery)
            # As it was published, not as the handler may have left it.
            signal = self._stream_of(delivery).signal(entry)
            if self._let_go(group, entry) and signal:
                group.add_dead(entry, DeadLetter(signal, error, delivery.attempt, self._now()))

    def leave(self) -> None:
        """See `bus.contract.GroupReader.leave`."""
        with self._changed:
            for stream in self._streams.values():
                group = self._group_in(stream)
                if all(held.consumer != self._consumer for held in group.pending.values()):
                    group.consumers.pop(self._consumer, None)

    def _sign_in(self) -> None:
        """Note that this consumer is there, and forget those that died and hold nothing any more."""
        now = self._now()
        for stream in self._streams.values():
            group = self._group_in(stream)
            busy = {self._consumer, *(held.consumer for held in group.pending.values())}
            group.consumers[self._consumer] = now
            for name in [name for name, at in group.consumers.items() if now - at > self._takeover_after and name not in busy]:
                del group.consumers[name]

    def _group_in(self, stream: MemoryStream) -> MemoryGroup:
        return stream.groups.setdefault(self._group, MemoryGroup(self._starting_place(stream)))

    def _has_unread(self) -> bool:
        return any(stream.last > self._group_in(stream).reached for stream in self._streams.values())

    def _fresh(self, limit: int) -> Iterator[Candidate]:
        """Retries that are due and signals not yet read, taken from where they stood."""
        now = self._now()
        for stream in self._streams.values():
            group = self._group_in(stream)
            due = sorted((when, entry) for entry, (when, _) in group.retries.items() if when <= now)
            for _, entry in due[:limit]:
                yield stream, group, entry, group.retries.pop(entry)[1] + 1
            for entry in islice(stream.after(group.reached), limit):
                group.reached = entry
                yield stream, group, entry, 1

    def _left_alone(self) -> Iterator[Candidate]:
        """One delivery that was in someone's hands for the takeover time, and before it those that were trimmed."""
        now = self._now()
        for stream in self._streams.values():
            group = self._group_in(stream)
            for entry in [entry for entry, held in group.pending.items() if now - held.since >= self._takeover_after]:
                yield stream, group, entry, group.pending.pop(entry).attempt + 1
                if stream.signal(entry):
                    return

    def _starting_place(self, stream: MemoryStream) -> EntryId:
        if self._start == END:
            return stream.last
        return (self._position or Position({})).of(stream.bounds.name)

    def _put_off(self, delivery: Delivery, attempt: int, delay: float) -> None:
        group, entry = self._place(delivery)
        if self._let_go(group, entry):
            group.retries[entry] = (self._now() + timedelta(seconds=delay), attempt)

    def _let_go(self, group: MemoryGroup, entry: EntryId) -> bool:
        """Take the entry out of this consumer's hands; False when it is not in them any more."""
        held = group.pending.get(entry)
        if held is None or held.consumer != self._consumer:
            return False
        del group.pending[entry]
        return True

    def _place(self, delivery: Delivery) -> tuple[MemoryGroup, EntryId]:
        _, entry = parse_entry(delivery.signal.entry_id or "")
        return self._stream_of(delivery).groups[self._group], entry

    def _stream_of(self, delivery: Delivery) -> MemoryStream:
        return self._streams[stream_of(delivery.signal.topic).name]
