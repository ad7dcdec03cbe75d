"""One stream in memory, and the state of its groups: what a server would keep. The bus's lock guards every call."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bus.contract import DeadLetter, Signal
from bus.failure import DEAD_LIMIT
from bus.payload import Draft
from bus.places import ZERO, EntryId
from bus.publishing import Written, stored_signal
from bus.streams import Stream

__all__ = ["MemoryGroup", "MemoryStream", "Pending"]

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(slots=True)
class Pending:
    """A delivery in the hands of a consumer, and since when."""

    consumer: str
    since: datetime
    attempt: int


@dataclass(slots=True)
class MemoryGroup:
    """The place of a group, and what became of the deliveries that are not over."""

    reached: EntryId
    pending: dict[EntryId, Pending] = field(default_factory=dict[EntryId, Pending])
    retries: dict[EntryId, tuple[datetime, int]] = field(default_factory=dict[EntryId, tuple[datetime, int]])
    dead: dict[EntryId, DeadLetter] = field(default_factory=dict[EntryId, DeadLetter])
    consumers: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """When each consumer that has not left last took."""

    def needs(self, entry: EntryId) -> bool:
        """Whether the group has yet to handle an entry."""
        return self.reached < entry or entry in self.pending or entry in self.retries

    def add_dead(self, entry: EntryId, letter: DeadLetter) -> None:
        """Keep a dead letter; the oldest goes when there are too many."""
        self.dead[entry] = letter
        while len(self.dead) > DEAD_LIMIT:
            del self.dead[next(iter(self.dead))]


class MemoryStream:
    """The entries of a stream in order, the ids that it remembers, and its groups."""

    def __init__(self, bounds: Stream) -> None:
        self.bounds = bounds
        self.last = ZERO
        self.groups: dict[str, MemoryGroup] = {}
        self._entries: dict[EntryId, Draft] = {}
        self._order: list[EntryId] = []
        self._known: OrderedDict[str, tuple[EntryId, datetime]] = OrderedDict()

    def add(self, draft: Draft, now: datetime) -> tuple[Written, dict[str, bool]]:
        """Write a signal unless its id is known.

        Also returns the groups that are behind the bounds, and for each whether something that it needs was dropped.
        """
        self._forget(now)
        late = self._trim(now, room=draft.id not in self._known)
        entry, _ = self._known.get(draft.id, (None, now))
        known = entry is not None
        if entry is None:
            entry = self.last = self._next_entry(now)
            self._entries[entry] = draft
            self._order.append(entry)
        self._known[draft.id] = (entry, now)
        self._known.move_to_end(draft.id)
        first = self._entries.get(entry)
        return Written(entry, (first.topic, first.payload) if known and first else None), late

    def after(self, entry: EntryId) -> Iterator[EntryId]:
        """The entries behind this one."""
        return (self._order[place] for place in range(bisect_right(self._order, entry), len(self._order)))

    def signal(self, entry: EntryId) -> Signal | None:
        """The signal of an entry, or None when it was trimmed."""
        held = self._entries.get(entry)
        return held and stored_signal(self.bounds.name, entry, held.id, held.topic, held.payload)

    def _next_entry(self, now: datetime) -> EntryId:
        milliseconds = max((now - _EPOCH) // timedelta(milliseconds=1), 1)
        if milliseconds > self.last.milliseconds:
            return EntryId(milliseconds, 0)
        return EntryId(self.last.milliseconds, self.last.sequence + 1)

    def _trim(self, now: datetime, *, room: bool) -> dict[str, bool]:
        """Drop what is too old, and too much when there must be room for one more. Returns the groups that are behind."""
        oldest_kept = now - timedelta(seconds=self.bounds.retention)
        late: dict[str, bool] = {}
        most = self.bounds.entries - room
        while self._order and (len(self._order) > most or self._order[0].time < oldest_kept):
            first = self._order[0]
            behind = [name for name, group in self.groups.items() if group.needs(first)]
            held = bool(behind) and len(self._order) < self.bounds.ceiling and first.time >= oldest_kept
            late |= {name: late.get(name, False) or not held for name in behind}
            if held:
                break
            del self._entries[self._order.pop(0)]
        return late

    def _forget(self, now: datetime) -> None:
        """Forget ids whose window is over."""
        forgotten = now - timedelta(seconds=self.bounds.window)
        while self._known and next(iter(self._known.values()))[1] < forgotten:
            self._known.popitem(last=False)
