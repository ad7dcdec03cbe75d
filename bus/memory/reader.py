"""One consumer of a group on the in-memory bus."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from bus.contract import BEGINNING, END, DeadLetter, Delivery, Signal, Taken
from bus.memory.stream import MemoryGroup, MemoryStream, Pending
from bus.places import EntryId, Position, parse_entry
from bus.streams import stream_of

__all__ = ["MemoryReader"]


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
            deliveries: list[Delivery] = []
            lost = 0
            for stream in self._streams.values():
                group = self._group_in(stream)
                for entry, attempt in self._candidates(stream, group, limit):
                    signal = stream.signal(entry)
                    if signal is None:
                        lost += 1
                    else:
                        deliveries.append(self._hand_out(group, entry, signal, attempt))
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

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """See `bus.contract.GroupReader.give_back`."""
        with self._changed:
            for delivery in deliveries:
                self._put_off(delivery, delivery.attempt - 1, 0)

    def bury(self, delivery: Delivery, error: str) -> None:
        """See `bus.contract.GroupReader.bury`."""
        with self._changed:
            group, entry = self._place(delivery)
            # As it was published, not as the handler may have left it.
            signal = self._stream_of(delivery).signal(entry)
            if self._let_go(group, entry) and signal:
                group.add_dead(entry, DeadLetter(signal, error, delivery.attempt, self._now()))

    def leave(self) -> None:
        """See `bus.contract.GroupReader.leave`: in memory nothing is kept of a consumer."""

    def _group_in(self, stream: MemoryStream) -> MemoryGroup:
        return stream.groups.setdefault(self._group, MemoryGroup(self._starting_place(stream)))

    def _has_unread(self) -> bool:
        return any(stream.last > self._group_in(stream).reached for stream in self._streams.values())

    def _candidates(self, stream: MemoryStream, group: MemoryGroup, limit: int) -> Iterator[tuple[EntryId, int]]:
        """Entries to deliver now with the number of the attempt, taken out of where they stood."""
        now = self._now()
        due = sorted((when, entry) for entry, (when, _) in group.retries.items() if when <= now)
        for _, entry in due[:limit]:
            yield entry, group.retries.pop(entry)[1] + 1
        alone = [entry for entry, held in group.pending.items() if now - held.since >= self._takeover_after]
        for entry in alone[:limit]:
            yield entry, group.pending.pop(entry).attempt + 1
        for entry, _ in zip(stream.after(group.reached), range(limit), strict=False):
            group.reached = entry
            yield entry, 1

    def _hand_out(self, group: MemoryGroup, entry: EntryId, signal: Signal, attempt: int) -> Delivery:
        group.pending[entry] = Pending(self._consumer, self._now(), attempt)
        return Delivery(signal, attempt)

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
