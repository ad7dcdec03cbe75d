"""Which deliveries of a batch may be handled side by side, and which must wait for an earlier one of the same key.

A failed signal is put off, so later ones of its key come first by themselves. Here they are seen to be early, and put off
behind it. What is known is what this consumer has put off: order holds within one consumer, for as long as it lives.
"""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

import structlog

from bus.contract import Delivery, Signal
from bus.places import EntryId, parse_entry

__all__ = ["Order", "OrderBy"]

OrderBy = str | Callable[[Signal], Any]
"""What must be handled in order: the signals that are equal in this value of the payload, or by this function.

A signal without such a value, or with None, waits for no other.
"""

_STEP = 0.05
"""Seconds that a delivery waits for an earlier one which is due but has not come yet."""

Place = tuple[EntryId, str]

_log = structlog.get_logger(__name__)


class Order:
    """The order of one consumer. ``forget_after`` seconds past its time, a signal that was put off is somebody else's."""

    def __init__(
        self, order_by: OrderBy | None, *, side_by_side: bool, forget_after: float, now: Callable[[], float] = monotonic
    ) -> None:
        self._order_by = order_by
        self._side_by_side = side_by_side
        self._forget_after = forget_after
        self._now = now
        self._put_off: dict[str, dict[Place, float]] = {}

    def lanes(self, deliveries: Sequence[Delivery]) -> list[list[Delivery]]:
        """The deliveries in lanes: one after the other within each, in order of publication where there is an order."""
        if not self._side_by_side:
            return [sorted(deliveries, key=_place) if self._order_by else list(deliveries)]
        if self._order_by is None:
            return [[delivery] for delivery in deliveries]
        lanes: dict[str | Place, list[Delivery]] = {}
        for delivery in sorted(deliveries, key=_place):
            key = self._key(delivery.signal)
            lanes.setdefault(_place(delivery) if key is None else key, []).append(delivery)
        return list(lanes.values())

    def wait_of(self, delivery: Delivery) -> float:
        """Seconds until it may be the turn of a delivery: 0 when no earlier one of its key is put off."""
        key = self._key(delivery.signal)
        waiting = self._put_off.get(key, {}) if key is not None else {}
        if not waiting:
            return 0.0
        now, place = self._now(), _place(delivery)
        for other in [other for other, due in waiting.items() if now > due + self._forget_after]:
            del waiting[other]
        earlier = [due for other, due in waiting.items() if other < place]
        return max(max(earlier) - now, _STEP) if earlier else 0.0

    def put_off(self, delivery: Delivery, delay: float) -> None:
        """A delivery will come again after so many seconds; later ones of its key are not to overtake it."""
        key = self._key(delivery.signal)
        if key is not None:
            self._put_off.setdefault(key, {})[_place(delivery)] = self._now() + delay

    def over(self, delivery: Delivery) -> None:
        """A delivery is handled or dead."""
        key = self._key(delivery.signal)
        if key is not None and (waiting := self._put_off.get(key)) is not None:
            waiting.pop(_place(delivery), None)
            if not waiting:
                del self._put_off[key]

    def _key(self, signal: Signal) -> str | None:
        if self._order_by is None:
            return None
        try:
            value = signal.payload.get(self._order_by) if isinstance(self._order_by, str) else self._order_by(signal)
            return None if value is None else repr(value)
        except Exception as trouble:  # noqa: BLE001 - a signal that breaks the function must not stop the group
            _log.warning("order_by failed: this signal waits for no other", signal_id=signal.id, trouble=repr(trouble))
            return None


def _place(delivery: Delivery) -> Place:
    stream, entry = parse_entry(delivery.signal.entry_id or "")
    return entry, stream
