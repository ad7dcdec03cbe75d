"""`SignalBus` in streams of a Redis or Valkey server (keys: `bus.redis.keys`).

What the server must be: 7.0 or newer, with an eviction policy that evicts nothing, for an evicted id could be published
again. How much a crash of the server can lose is up to its own persistence settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import redis

from bus.contract import BEGINNING, EVERY_TOPIC, READ_LIMIT, DeadLetter, GroupInfo, Page, Signal
from bus.errors import BusError, BusUnreachableError
from bus.payload import Draft, check_name, draft
from bus.places import ZERO, EntryId, Position, parse_entry
from bus.publishing import Written, outcome
from bus.reading import Entry, read_page
from bus.redis.entries import RawEntry, entries_between, letter_of, signal_of
from bus.redis.keys import BusKeys, StreamKeys
from bus.redis.reader import RedisReader
from bus.streams import STREAMS, Stream, streams_for
from bus.topics import check_patterns
from persistence.redis import RedisLink, load_script

__all__ = ["DEFAULT_STREAM", "PUBLISH_BATCH", "RedisSignalBus"]

DEFAULT_STREAM = "jarvis:signals"
PUBLISH_BATCH = 500
"""Signals in one trip: a larger batch takes several, so that the server answers others in between."""
_PAGE = 200
"""Entries in one page of a scan."""

_PUBLISH = load_script("bus.redis", "publish")
_REPLAY = load_script("bus.redis", "replay")


class RedisSignalBus:
    """The bus of one server. ``client`` gives the address; ``stream`` is the name that all its keys start with."""

    def __init__(self, client: redis.Redis, stream: str = DEFAULT_STREAM) -> None:
        self._link = RedisLink(client, error=BusError, unreachable=BusUnreachableError)
        keys = BusKeys(stream)
        self._keys = {one.name: keys.of(one.name) for one in STREAMS}

    def publish(self, id: str, topic: str, payload: Mapping[str, Any], *, strict: bool = False) -> Signal:  # noqa: A002
        """See `bus.contract.SignalBus.publish`."""
        return self.publish_many([Signal(id, topic, payload)], strict=strict)[0]

    def publish_many(self, signals: Sequence[Signal], *, strict: bool = False) -> list[Signal]:
        """See `bus.contract.SignalBus.publish_many`."""
        drafts = [draft(signal) for signal in signals]
        written: dict[int, Written] = {}
        for stream in STREAMS:
            places = iter([place for place, one in enumerate(drafts) if one.stream is stream])
            while batch := list(islice(places, PUBLISH_BATCH)):
                written |= zip(batch, self._write(stream, [drafts[place] for place in batch]), strict=True)
        return [outcome(one, written[place], strict=strict) for place, one in enumerate(drafts)]

    def read(self, topics: Sequence[str] = EVERY_TOPIC, after: str | None = None, limit: int = READ_LIMIT) -> Page:
        """See `bus.contract.SignalBus.read`."""
        return read_page(self._scan, topics, after, limit)

    def position(self) -> str:
        """See `bus.contract.SignalBus.position`."""

        def newest(client: redis.Redis) -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                for keys in self._keys.values():
                    pipe.xrevrange(keys.stream, count=1)
                return pipe.execute()

        found = self._link.repeat(newest)[0]
        ends = {name: EntryId.parse(last[0][0]) if last else ZERO for name, last in zip(self._keys, found, strict=True)}
        return str(Position(ends))

    def join(
        self, group: str, consumer: str, *, topics: Sequence[str] = EVERY_TOPIC, start: str = BEGINNING, takeover_after: float
    ) -> RedisReader:
        """See `bus.contract.SignalBus.join`."""
        return RedisReader(
            self._link,
            {stream.name: self._keys[stream.name] for stream in streams_for(check_patterns(topics))},
            group=check_name("the name of a group", group),
            consumer=check_name("the name of a consumer", consumer),
            start=start,
            takeover_after=takeover_after,
        )

    def groups(self) -> list[GroupInfo]:
        """See `bus.contract.SignalBus.groups`."""
        found: dict[str, GroupInfo] = {}
        for keys in self._keys.values():
            for info in self._group_infos(keys):
                name = cast(bytes, info["name"]).decode()
                found[name] = self._with_stream(found.get(name) or GroupInfo(name, 0, 0, 0, 0), keys, info)
        return [found[name] for name in sorted(found)]

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """See `bus.contract.SignalBus.dead_letters`."""
        letters = [letter for stream in STREAMS for _, letter in self._letters(stream, group)]
        return sorted(letters, key=lambda letter: letter.died_at)

    def replay(self, group: str, entry_ids: Sequence[str]) -> int:
        """See `bus.contract.SignalBus.replay`."""
        wanted = {parse_entry(text) for text in entry_ids}
        return sum(self._replay(stream, group, wanted) for stream in STREAMS)

    def _write(self, stream: Stream, drafts: Sequence[Draft]) -> list[Written]:
        """One trip. Repeating it after a lost reply is safe: the ids are known by then."""
        keys = self._keys[stream.name]
        names = [keys.stream, *(keys.known(one.id) for one in drafts)]
        parts = [part for one in drafts for part in (one.id, one.topic, one.payload)]
        bounds = [stream.entries, stream.retention, stream.window]
        reply = self._link.repeat(self._link.call(_PUBLISH, names, [*bounds, *parts]))[0]
        return [_written(one) for one in cast(list[list[bytes]], reply)]

    def _scan(self, stream: Stream, after: EntryId) -> Iterator[Entry]:
        for entry, fields in self._raw_entries(self._keys[stream.name].stream, after):
            yield EntryId.parse(entry), stream.name, signal_of(stream.name, entry, fields)

    def _raw_entries(self, key: str, after: EntryId = ZERO) -> Iterator[RawEntry]:
        def fetch(low: str) -> list[RawEntry]:
            return self._link.repeat(lambda client: client.xrange(key, min=low, count=_PAGE))[0]

        return entries_between(fetch, after, _PAGE)

    def _group_infos(self, keys: StreamKeys) -> list[dict[str, Any]]:
        def infos(client: redis.Redis) -> Any:
            # Asking about a stream that does not exist is an error to the server, and nothing to us.
            return client.xinfo_groups(keys.stream) if client.exists(keys.stream) else []

        return self._link.repeat(infos)[0]

    def _with_stream(self, sum_so_far: GroupInfo, keys: StreamKeys, info: dict[str, Any]) -> GroupInfo:
        name = sum_so_far.name
        retrying = self._link.repeat(lambda client: client.zcard(keys.retry(name)))[0]
        dead = self._link.repeat(lambda client: client.xlen(keys.dead(name)))[0]
        lag = info.get("lag")
        # The server does not know the lag of a group that started in the middle of a stream: then they are counted.
        unread = (
            sum(1 for _ in self._raw_entries(keys.stream, EntryId.parse(info["last-delivered-id"]))) if lag is None else lag
        )
        return GroupInfo(
            name,
            unread=sum_so_far.unread + unread,
            pending=sum_so_far.pending + info["pending"],
            retrying=sum_so_far.retrying + retrying,
            dead=sum_so_far.dead + dead,
        )

    def _letters(self, stream: Stream, group: str) -> Iterator[tuple[bytes, DeadLetter]]:
        """The dead letters of one stream, with their ids in the dead letter stream."""
        for entry, fields in self._raw_entries(self._keys[stream.name].dead(group)):
            letter = letter_of(stream.name, entry, fields)
            if letter is not None:
                yield entry, letter

    def _replay(self, stream: Stream, group: str, wanted: set[tuple[str, EntryId]]) -> int:
        keys = self._keys[stream.name]
        places = {letter: parse_entry(dead.signal.entry_id or "") for letter, dead in self._letters(stream, group)}
        chosen = [part for letter, place in places.items() if place in wanted for part in (letter, str(place[1]))]
        if not chosen:
            return 0
        call = self._link.call(_REPLAY, [keys.stream, keys.retry(group), keys.dead(group)], chosen)
        return cast(int, self._link.repeat(call)[0])


def _written(reply: list[bytes]) -> Written:
    entry = EntryId.parse(reply[0])
    return Written(entry, (reply[1].decode(), reply[2]) if len(reply) > 1 else None)
