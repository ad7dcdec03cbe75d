"""The delivery ledger: what became of each alert at each address.

Before an alert is sent its record says "sending", afterwards "sent" or "failed". Whoever finds "sending" was handed the signal
because its sender was ended in between, or has been silent for longer than a takeover takes. Nobody can tell then whether the
alert arrived, and that is what the record says from there on: "unknown". If that sender lives after all, its outcome counts.

partition  key                 value
signal id  hash of an address  "<state> <when, ISO 8601> <token>"; the token makes each record one that nobody else writes

The index entry of a signal is due when the signal is forgotten, long after the bus could deliver it again. It has the status
"unknown" while one of its deliveries is that; its summary says until when (Unix seconds) `jarvis doctor` shows it.
"""

import datetime as dt
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from persistence import IndexEntry, Persistence

__all__ = ["KEPT_FOR", "SHOWN_FOR", "Attempt", "DeliveryLedger", "DeliveryState"]

KEPT_FOR = 90 * 24 * 3600
"""Seconds for which it is remembered what became of a signal's alerts."""
SHOWN_FOR = 7 * 24 * 3600
"""Seconds for which a delivery of which nothing is known is shown."""
_FORGOTTEN_AT_ONCE = 100
_GONE = "gone"
"""The key of a record that is written only so that an entry without records can be deleted."""
_REMEMBERED = 1000
"""Records that a process knows more of than the store; there are some only after trouble with it."""


class DeliveryState(Enum):
    """What became of an alert at an address."""

    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    """The address did not take it; it is sent again."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver a signal by a route, and the record that stands for it."""

    signal_id: str
    route: str
    record: bytes


class DeliveryLedger:
    """The ledger in a store of its own prefix. ``now`` gives aware moments.

    With ``resend`` an alert of which nobody knows whether it arrived is sent again: it may repeat, but never vanishes.
    """

    def __init__(
        self, store: Persistence, *, resend: bool = False, now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    ) -> None:
        self._store = store
        self._resend = resend
        self._now = now
        # What this process knows of records that the store could not be brought to hold, or to replace.
        self._known: dict[bytes, DeliveryState] = {}

    def begin(self, signal_id: str, route: str, on_unknown: Callable[[], None] = lambda: None) -> Attempt | None:
        """Record that an alert is about to be sent. None when it is not to be sent: it was, or nobody knows.

        ``on_unknown`` is called when that is found out, once for each attempt that was lost.
        """
        ours = Attempt(signal_id, route, self._record(DeliveryState.SENDING))
        self._note(ours.record, DeliveryState.FAILED)  # until the store has answered: nothing was sent
        begun = self._begin(ours, on_unknown)
        self._known.pop(ours.record, None)
        return ours if begun else None

    def end(self, attempt: Attempt, state: DeliveryState) -> None:
        """Record how an attempt ended. If the store does not answer, this process still knows when it is asked again."""
        self._note(attempt.record, state)
        self._settle(attempt, state)
        self._known.pop(attempt.record, None)

    def state(self, signal_id: str, route: str) -> DeliveryState | None:
        """What became of a signal by a route; None when it has not been begun."""
        held = self._store.get(signal_id, route)
        return None if held is None else self._state(held)

    def unknown(self) -> list[str]:
        """The ids of signals of which nobody knows whether all their alerts arrived, for as long as that is shown."""
        moment = self._now().timestamp()
        found = self._store.find(status=DeliveryState.UNKNOWN.value)
        return [entry.partition for entry in found if float(entry.summary or 0) > moment]

    def tidy(self) -> int:
        """Forget signals whose time is over, a bounded number. Returns how many."""
        return sum(self._forget(entry) for entry in self._store.due(self._now().timestamp(), _FORGOTTEN_AT_ONCE))

    def _begin(self, ours: Attempt, on_unknown: Callable[[], None]) -> bool:
        if self._store.initialize_if_absent(ours.signal_id, ours.route, ours.record, index=self._first_entry(ours.signal_id)):
            return True
        while (held := self._store.get(ours.signal_id, ours.route)) is not None:
            found = Attempt(ours.signal_id, ours.route, held)
            match self._state(held):
                case DeliveryState.SENT:
                    if held in self._known:
                        self.end(found, DeliveryState.SENT)
                    return False
                case DeliveryState.SENDING:
                    if self._replace(found, self._record(DeliveryState.UNKNOWN), DeliveryState.UNKNOWN):
                        on_unknown()
                case DeliveryState.UNKNOWN if not self._resend:
                    return False
                case _:
                    if self._replace(found, ours.record, DeliveryState.SENDING):
                        self._known.pop(held, None)
                        return True
        return self._begin(ours, on_unknown)  # somebody has deleted the record meanwhile

    def _settle(self, attempt: Attempt, state: DeliveryState) -> None:
        outcome, held = self._record(state), attempt.record
        while not self._replace(Attempt(attempt.signal_id, attempt.route, held), outcome, state):
            now_held = self._store.get(attempt.signal_id, attempt.route)
            if now_held is None or self._state(now_held) is not DeliveryState.UNKNOWN:
                return  # somebody else has sent it meanwhile
            held = now_held

    def _replace(self, found: Attempt, record: bytes, state: DeliveryState) -> bool:
        """Write a record in the place of the one that was found."""
        index = self._entry(found, state) if DeliveryState.UNKNOWN in (state, _parsed(found.record)) else None
        records = {found.route: record}
        return self._store.write_if_unchanged(found.signal_id, found.route, found.record, records, index=index)

    def _first_entry(self, signal_id: str) -> IndexEntry | None:
        """What the index says of a signal that it does not know."""
        return None if self._store.entry(signal_id) else self._indexed(signal_id, DeliveryState.SENDING)

    def _entry(self, found: Attempt, state: DeliveryState) -> IndexEntry:
        """What the index says of a signal once the delivery that was found is in another state."""
        others = {_parsed(held) for route, held in self._store.load(found.signal_id).items() if route != found.route}
        return self._indexed(found.signal_id, DeliveryState.UNKNOWN if DeliveryState.UNKNOWN in {state, *others} else state)

    def _indexed(self, signal_id: str, state: DeliveryState) -> IndexEntry:
        now = self._now().timestamp()
        shown_until = repr(now + SHOWN_FOR) if state is DeliveryState.UNKNOWN else ""
        return IndexEntry(signal_id, now + KEPT_FOR, status=state.value, summary=shown_until)

    def _forget(self, entry: IndexEntry) -> bool:
        held = self._store.load(entry.partition)
        if not held:  # a server that evicts has dropped the records: the entry alone is left, and would stand before all others
            self._store.initialize_if_absent(entry.partition, _GONE, b"")
            return self._store.delete_if_unchanged(entry.partition, _GONE, b"")
        # Of a signal that is being sent again at this moment one record may be newer: then the condition is lost, or it goes
        # on without what was known of it 90 days ago.
        return any(self._store.delete_if_unchanged(entry.partition, *record) for record in list(held.items())[:1])

    def _note(self, record: bytes, state: DeliveryState) -> None:
        """Know what the store may come not to know."""
        self._known[record] = state
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def _state(self, held: bytes) -> DeliveryState:
        return self._known.get(held) or _parsed(held)

    def _record(self, state: DeliveryState) -> bytes:
        return f"{state.value} {self._now().isoformat()} {secrets.token_hex(6)}".encode()


_STATES = {state.value.encode(): state for state in DeliveryState}


def _parsed(held: bytes) -> DeliveryState:
    """The state in a record. A record without one is of an earlier release, which wrote only what had been sent."""
    return _STATES.get(held.partition(b" ")[0], DeliveryState.SENT)
