"""`SignalBus` in streams of a Redis or Valkey server (keys: `bus.redis.keys`).

What the server must be: 7.0 or newer, with an eviction policy that evicts nothing, for an evicted id could be published
again. How much a crash of the server can lose is up to its own persistence settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, cast

import redis

from bus.contract import BEGINNING, EVERY_TOPIC, READ_LIMIT, DeadLetter, GroupInfo, Page, Signal
from bus.errors import BusError, BusUnreachableError
from bus.payload import Draft, check_name, draft
from bus.places import ZERO, EntryId, Position, parse_entry, start_text
from bus.publishing import Written, lateness, outcome
from bus.reading import Entry, earliest, read_page
from bus.redis.entries import RawEntry, entries_between, letter_of, signal_of
from bus.redis.keys import BusKeys, StreamKeys
from bus.redis.reader import RedisReader
from bus.streams import STREAMS, Stream, streams_for
from bus.topics import check_patterns
from persistence.redis import Client, RedisLink, load_script

__all__ = ["DEFAULT_STREAM", "PUBLISH_BATCH", "RedisSignalBus"]

DEFAULT_STREAM = "jarvis:signals"
PUBLISH_BATCH = 500
"""Signals in one trip: a larger batch takes several, so that the server answers others in between."""
LETTER_BATCH = 500
"""Dead letters that one trip replays or discards."""
_PAGE = 200
"""Entries in one page of a scan."""

_ENDS = load_script("bus.redis", "ends")
_PUBLISH = load_script("bus.redis", "rights", "publish")
_REPLAY = load_script("bus.redis", "rights", "replay")
_SNAPSHOT = load_script("bus.redis", "snapshot")


class RedisSignalBus:
    """The bus of one server. ``client`` gives the address; ``stream`` is the name that all its keys start with."""

    def __init__(self, client: Client, stream: str = DEFAULT_STREAM) -> None:
        self._link = RedisLink(client, error=BusError, unreachable=BusUnreachableError)
        keys = BusKeys(stream)
        self._keys = {one.name: keys.of(one.name) for one in STREAMS}

    def publish(self, id: str, topic: str, payload: Mapping[str, Any], *, strict: bool = False) -> Signal:  # noqa: A002
        """See `bus.contract.SignalBus.publish`."""
        one = draft(Signal(id, topic, payload))
        return outcome(one, self._write(one.stream, [one])[0], strict=strict)

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
        streams = [keys.stream for keys in self._keys.values()]
        found = cast(list[bytes], self._link.repeat(self._link.call(_ENDS, streams, []))[0])
        ends = {name: EntryId.parse(end) if end else ZERO for name, end in zip(self._keys, found, strict=True)}
        return str(Position(ends))

    def join(
        self,
        group: str,
        consumer: str,
        *,
        topics: Sequence[str] = EVERY_TOPIC,
        start: str | datetime = BEGINNING,
        takeover_after: float,
    ) -> RedisReader:
        """See `bus.contract.SignalBus.join`."""
        return RedisReader(
            self._link,
            {stream.name: self._keys[stream.name] for stream in streams_for(check_patterns(topics))},
            group=check_name("the name of a group", group),
            consumer=check_name("the name of a consumer", consumer),
            start=start_text(start),
            takeover_after=takeover_after,
        )

    def groups(self) -> list[GroupInfo]:
        """See `bus.contract.SignalBus.groups`."""
        found: dict[str, GroupInfo] = {}
        for keys in self._keys.values():
            for name in self._group_names(keys):
                snapshot = self._snapshot(keys, name)
                if snapshot is not None:
                    sum_so_far = found.get(name) or GroupInfo(name, 0, 0, 0, 0)
                    found[name] = self._with_stream(sum_so_far, keys, snapshot)
        return [found[name] for name in sorted(found)]

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """See `bus.contract.SignalBus.dead_letters`."""
        letters = [letter for stream in STREAMS for _, letter in self._letters(stream, group)]
        return sorted(letters, key=lambda letter: letter.died_at)

    def replay(self, group: str, entry_ids: Sequence[str]) -> int:
        """See `bus.contract.SignalBus.replay`."""
        wanted = {parse_entry(text) for text in entry_ids}
        return sum(self._replay(stream, group, wanted) for stream in STREAMS)

    def discard(self, group: str, entry_ids: Sequence[str]) -> int:
        """See `bus.contract.SignalBus.discard`."""
        wanted = {parse_entry(text) for text in entry_ids}
        return sum(self._discard(stream, group, wanted) for stream in STREAMS)

    def _write(self, stream: Stream, drafts: Sequence[Draft]) -> list[Written]:
        """One trip, and another one for warnings where groups are behind."""
        written, warnings = self._put(stream, drafts)
        newest = max(one.entry for one in written)
        for group, dropped in warnings:
            warning = draft(lateness(stream, group.decode(), newest.time, dropped=bool(dropped)))
            self._put(warning.stream, [warning])
        return written

    def _put(self, stream: Stream, drafts: Sequence[Draft]) -> tuple[list[Written], list[tuple[bytes, int]]]:
        """One trip. Repeating it after a lost reply is safe: the ids are known by then."""
        keys = self._keys[stream.name]
        names = [keys.stream, *(keys.known(one.id) for one in drafts)]
        parts = [part for one in drafts for part in (one.id, one.topic, one.payload)]
        bounds = [stream.entries, stream.ceiling, stream.retention, stream.window]
        replies, warnings = self._link.repeat(self._link.call(_PUBLISH, names, [*bounds, *parts]))[0]
        return [_written(one) for one in cast(list[list[bytes]], replies)], cast(list[tuple[bytes, int]], warnings)

    def _scan(self, stream: Stream, after: EntryId) -> Iterator[Entry]:
        for entry, fields in self._raw_entries(self._keys[stream.name].stream, after):
            yield EntryId.parse(entry), stream.name, signal_of(stream.name, entry, fields)

    def _raw_entries(self, key: str, after: EntryId = ZERO) -> Iterator[RawEntry]:
        def fetch(low: str) -> list[RawEntry]:
            return self._link.repeat(lambda client: client.xrange(key, min=low, count=_PAGE))[0]

        return entries_between(fetch, after, _PAGE)

    def _group_names(self, keys: StreamKeys) -> list[str]:
        def infos(client: redis.Redis) -> Any:
            # Asking about a stream that does not exist is an error to the server, and nothing to us.
            return client.xinfo_groups(keys.stream) if client.exists(keys.stream) else []

        return [cast(bytes, info["name"]).decode() for info in self._link.repeat(infos)[0]]

    def _snapshot(self, keys: StreamKeys, group: str) -> list[Any] | None:
        """How far a group is on one stream (`lua/snapshot.lua`); None when the group is gone meanwhile."""
        names = [keys.stream, keys.retry(group), keys.dead(group)]
        return self._link.repeat(self._link.call(_SNAPSHOT, names, [group]))[0]

    def _with_stream(self, sum_so_far: GroupInfo, keys: StreamKeys, snapshot: list[Any]) -> GroupInfo:
        info, retrying, dead, (pending, oldest), consumers, entries = snapshot
        told = _pairs(info)
        reached, lag = EntryId.parse(told[b"last-delivered-id"]), told.get(b"lag")
        first = self._first_after(keys.stream, reached)
        # The server does not know the lag of a group that started in the middle of a stream: then they are counted. Before 7.2
        # it takes what was trimmed unread for unread ever after.
        known = min(lag, entries) if isinstance(lag, int) else sum(1 for _ in self._raw_entries(keys.stream, reached))
        unread = 0 if first is None else known
        return GroupInfo(
            sum_so_far.name,
            unread=sum_so_far.unread + unread,
            pending=sum_so_far.pending + pending,
            retrying=sum_so_far.retrying + retrying,
            dead=sum_so_far.dead + dead,
            oldest_unread=earliest(sum_so_far.oldest_unread, first if unread else None),
            oldest_pending=earliest(sum_so_far.oldest_pending, EntryId.parse(oldest).time if pending else None),
            # A consumer reads all streams of its group under one name.
            consumers=max(sum_so_far.consumers, len(consumers)),
            idle=earliest(sum_so_far.idle, min((_pairs(one)[b"idle"] / 1000 for one in consumers), default=None)),
        )

    def _first_after(self, key: str, entry: EntryId) -> datetime | None:
        found = self._link.repeat(lambda client: client.xrange(key, min=f"({entry}", count=1))[0]
        return EntryId.parse(found[0][0]).time if found else None

    def _letters(self, stream: Stream, group: str) -> Iterator[tuple[bytes, DeadLetter]]:
        """The dead letters of one stream, with their ids in the dead letter stream."""
        for entry, fields in self._raw_entries(self._keys[stream.name].dead(group)):
            letter = letter_of(stream.name, entry, fields)
            if letter is not None:
                yield entry, letter

    def _replay(self, stream: Stream, group: str, wanted: set[tuple[str, EntryId]]) -> int:
        keys = self._keys[stream.name]
        names = [keys.stream, keys.retry(group), keys.dead(group)]
        replayed = 0
        for chosen in _batches(self._wanted_letters(stream, group, wanted), LETTER_BATCH):
            parts = [part for letter, entry in chosen for part in (letter, str(entry))]
            replayed += cast(int, self._link.repeat(self._link.call(_REPLAY, names, parts))[0])
        return replayed

    def _discard(self, stream: Stream, group: str, wanted: set[tuple[str, EntryId]]) -> int:
        key = self._keys[stream.name].dead(group)
        discarded = 0
        for chosen in _batches(self._wanted_letters(stream, group, wanted), LETTER_BATCH):
            letters = [letter for letter, _ in chosen]
            count, uncertain = self._link.repeat(lambda client, letters=letters: client.xdel(key, *letters))
            # After a lost reply the letters are gone all the same.
            discarded += len(letters) if uncertain else cast(int, count)
        return discarded

    def _wanted_letters(self, stream: Stream, group: str, wanted: set[tuple[str, EntryId]]) -> list[tuple[bytes, EntryId]]:
        """The ids in the dead letter stream, and the entries of the signals, of those that are wanted."""
        places = [(letter, parse_entry(dead.signal.entry_id or "")) for letter, dead in self._letters(stream, group)]
        return [(letter, place[1]) for letter, place in places if place in wanted]


def _pairs(flat: list[Any]) -> dict[bytes, Any]:
    """Names and values that a script gives one after the other."""
    return dict(zip(flat[::2], flat[1::2], strict=False))


def _written(reply: list[bytes]) -> Written:
    entry = EntryId.parse(reply[0])
    return Written(entry, (reply[1].decode(), reply[2]) if len(reply) > 1 else None)


def _batches(letters: list[tuple[bytes, EntryId]], size: int) -> Iterator[list[tuple[bytes, EntryId]]]:
    return (letters[first : first + size] for first in range(0, len(letters), size))
