"""One consumer of a group on the Redis bus: each call is one script for each of its streams."""

from collections.abc import Sequence
from time import monotonic
from typing import Any, cast

import redis
from redis.exceptions import ResponseError

from bus.contract import BEGINNING, END, Delivery, Taken
from bus.failure import DEAD_LIMIT
from bus.places import ZERO, Position, parse_entry
from bus.redis.entries import paired, signal_of
from bus.redis.keys import StreamKeys
from persistence.redis import RedisLink, Script, load_script

__all__ = ["RedisReader"]

_TAKE = load_script("bus.redis", "rights", "take")
_PUT_OFF = load_script("bus.redis", "rights", "in_hand", "put_off")
_BURY = load_script("bus.redis", "rights", "in_hand", "bury")
_LEAVE = load_script("bus.redis", "leave")
_TIDY = load_script("bus.redis", "tidy")

_LOOKS = 20
"""Times ten entries of the pending list that one take examines for an abandoned one."""


class RedisReader:
    """`bus.contract.GroupReader` over Redis streams, named with their keys.

    A take is not repeated when its reply is lost: what it took stands in the group's pending list and comes back after the
    takeover time.
    """

    def __init__(
        self,
        link: RedisLink,
        streams: dict[str, StreamKeys],
        *,
        group: str,
        consumer: str,
        start: str,
        takeover_after: float,
    ) -> None:
        self._link = link
        self._group = group
        self._consumer = consumer
        self._takeover_after = int(takeover_after * 1000)
        self._tidy_at = monotonic() + takeover_after
        self._streams = {name: _StreamPlace(keys, _start_in(name, start)) for name, keys in streams.items()}

    def take(self, limit: int) -> Taken:
        """See `bus.contract.GroupReader.take`."""
        deliveries: list[Delivery] = []
        abandoned: list[Delivery] = []
        lost = 0
        for stream, place in self._streams.items():
            found, left_alone, gone = self._take_from(place, limit, looks=0 if abandoned else _LOOKS)
            fresh, old = self._readable(stream, found), self._readable(stream, [left_alone] if left_alone else [])
            deliveries += fresh
            abandoned += old
            lost += gone + len(found) + bool(left_alone) - len(fresh) - len(old)
        self._tidy()
        return Taken([*deliveries, *abandoned], lost)

    def wait(self, seconds: float) -> None:
        """See `bus.contract.GroupReader.wait`. Only a look behind what the group has reached, so a lost reply loses nothing."""
        reached: dict[Any, Any] = {place.keys.stream: place.reached or "$" for place in self._streams.values()}
        milliseconds = max(int(min(seconds, self._longest_wait()) * 1000), 1)

        def look(client: redis.Redis) -> None:
            try:
                client.xread(reached, count=1, block=milliseconds)
            except ResponseError as trouble:
                # The server became a replica: the wait is over, and the next take finds out what that means.
                if not str(trouble).startswith("UNBLOCKED"):
                    raise

        self._link.run(look)

    def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """See `bus.contract.GroupReader.acknowledge`: one command for each stream."""
        places = [_place(delivery) for delivery in deliveries]
        for stream, place in self._streams.items():
            self._let_go(place, [entry for name, entry in places if name == stream])

    def retry(self, delivery: Delivery, delay: float) -> None:
        """See `bus.contract.GroupReader.retry`."""
        self._put_off(delivery, delivery.attempt, delay)

    def give_back(self, deliveries: Sequence[Delivery], delay: float = 0.0) -> None:
        """See `bus.contract.GroupReader.give_back`."""
        for delivery in deliveries:
            self._put_off(delivery, delivery.attempt - 1, delay)

    def bury(self, delivery: Delivery, error: str) -> None:
        """See `bus.contract.GroupReader.bury`."""
        stream, entry = _place(delivery)
        keys = self._streams[stream].keys
        self._call(_BURY, [keys.stream, keys.dead(self._group)], [entry, delivery.attempt, error, DEAD_LIMIT])

    def leave(self) -> None:
        """See `bus.contract.GroupReader.leave`."""
        for place in self._streams.values():
            self._call(_LEAVE, [place.keys.stream], [])

    def _take_from(self, place: "_StreamPlace", limit: int, looks: int) -> tuple[list[Any], list[Any], int]:
        names = [place.keys.stream, place.keys.retry(self._group)]
        args = [limit, self._takeover_after, place.cursor, place.start, place.reached, looks]
        reply = self._link.run(self._link.call(_TAKE, names, [self._group, self._consumer, *args]))
        found, left_alone, gone, place.cursor, place.reached = cast(
            tuple[list[Any], list[Any], int, bytes, bytes], tuple(reply)
        )
        return found, left_alone, gone

    def _tidy(self) -> None:
        """Once in a takeover time: forget consumers that died and hold nothing any more."""
        if monotonic() >= self._tidy_at:
            for place in self._streams.values():
                self._call(_TIDY, [place.keys.stream], [self._takeover_after])
            self._tidy_at = monotonic() + self._takeover_after / 1000

    def _readable(self, stream: str, found: list[Any]) -> list[Delivery]:
        """The deliveries that are signals; the others are acknowledged, for nobody could ever handle them."""
        signals = [(signal_of(stream, entry, paired(fields)), entry, attempt) for entry, attempt, fields in found]
        self._let_go(self._streams[stream], [entry for signal, entry, _ in signals if signal is None])
        return [Delivery(signal, attempt) for signal, _, attempt in signals if signal]

    def _longest_wait(self) -> float:
        """Well below the time after which the client would take the silence of a blocked read for a dead server."""
        return (self._link.reply_timeout or 10.0) / 2

    def _let_go(self, place: "_StreamPlace", entries: Sequence[str | bytes]) -> None:
        if entries:
            self._link.repeat(lambda client: client.xack(place.keys.stream, self._group, *entries))

    def _put_off(self, delivery: Delivery, attempts: int, delay: float) -> None:
        stream, entry = _place(delivery)
        keys = self._streams[stream].keys
        self._call(_PUT_OFF, [keys.stream, keys.retry(self._group)], [entry, attempts, int(delay * 1000)])

    def _call(self, script: Script, keys: list[str], args: Sequence[str | bytes | int]) -> None:
        """A call that is safe to repeat, since it changes only what is in this consumer's hands."""
        self._link.repeat(self._link.call(script, keys, [self._group, self._consumer, *args]))


class _StreamPlace:
    """Where a reader is in one stream: where a new group starts, how far the group is, how far the look for abandoned ones."""

    def __init__(self, keys: StreamKeys, start: str) -> None:
        self.keys = keys
        self.start = start
        self.reached: bytes = b""  # unknown before the first take
        # Kept from take to take: starting over each time would never come to the end of a long pending list.
        self.cursor: bytes = b"0-0"


def _start_in(stream: str, start: str) -> str:
    if start == END:
        return "$"
    return str(ZERO if start == BEGINNING else Position.parse(start).of(stream))


def _place(delivery: Delivery) -> tuple[str, str]:
    stream, entry = parse_entry(delivery.signal.entry_id or "")
    return stream, str(entry)
