"""`Persistence` in Redis or Valkey: one hash per partition, each intent one Lua call (keys: `persistence.redis.keys`).

A call whose reply was lost is repeated. Then a lost condition may be our own write met again: it counts as success exactly
when the condition holds the bytes that this call would have written, since writers choose bytes that nobody else writes. The
script itself says what the condition holds, so that both are seen at one moment, and by a server that may be written to.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, cast

import redis
from redis.client import Pipeline

from persistence.contract import DEFAULT_LIMIT, IndexEntry, LogEntry
from persistence.errors import PersistenceError, UnreachableError
from persistence.redis.clients import Client
from persistence.redis.keys import SHARDS, Keys, shard_of
from persistence.redis.link import RETRY_DELAYS, RedisLink, Script, load_script
from persistence.text import require_place, require_text

__all__ = ["DEFAULT_PREFIX", "LOG_LIMIT", "RedisPersistence"]

DEFAULT_PREFIX = "jarvis:workflow:"
LOG_LIMIT = 10_000
"""Entries that each of the 64 parts of a log keeps, about; older ones go."""

WRITTEN = 1
"""The reply of a script that took effect; otherwise it is the bytes of the condition, or None."""

_INITIALIZE = load_script("persistence.redis", "index_and_logs", "initialize_if_absent")
_WRITE = load_script("persistence.redis", "index_and_logs", "write_if_unchanged")
_DELETE = load_script("persistence.redis", "index_and_logs", "delete_if_unchanged")


class RedisPersistence:
    """The store in Redis or Valkey: one server, the primary that Sentinels name, or a cluster.

    ``client`` gives the address (`redis.Redis`, ``Sentinel.master_for(…)``, `redis.RedisCluster`, or what `connect` made of a
    URL); ``prefix`` keeps several stores apart.
    """

    def __init__(
        self,
        client: Client,
        prefix: str = DEFAULT_PREFIX,
        *,
        log_limit: int = LOG_LIMIT,
        retry_delays: Sequence[float] = RETRY_DELAYS,
    ) -> None:
        self._link = RedisLink(client, error=PersistenceError, unreachable=UnreachableError, retry_delays=retry_delays)
        self._shards = [Keys(prefix, shard) for shard in range(SHARDS)]
        self._log_limit = log_limit

    def get(self, partition: str, key: str) -> bytes | None:
        """See `Persistence.get`."""
        require_place(partition, key)
        name = self._keys(partition).partition(partition)
        return self._link.repeat(lambda client: client.hget(name, key))[0]

    def load(self, partition: str) -> dict[str, bytes]:
        """See `Persistence.load`."""
        require_place(partition)
        name = self._keys(partition).partition(partition)
        held = cast(dict[bytes, bytes], self._link.repeat(lambda client: client.hgetall(name))[0])
        return {key.decode(): value for key, value in held.items()}

    def initialize_if_absent(
        self,
        partition: str,
        condition_key: str,
        initial_value: bytes,
        records: Mapping[str, bytes] | None = None,
        index: IndexEntry | None = None,
        append: Sequence[tuple[str, bytes]] = (),
    ) -> bool:
        """See `Persistence.initialize_if_absent`."""
        require_place(partition, condition_key, *(records or {}), append=append)
        fields = _flat(records or {})
        args = [partition, condition_key, initial_value, *_entry(partition, index), self._log_limit, len(fields) // 2, *fields]
        held, uncertain = self._call(_INITIALIZE, partition, args, append)
        return held == WRITTEN or (uncertain and held == initial_value)

    def write_if_unchanged(
        self,
        partition: str,
        condition_key: str,
        expected_value: bytes,
        records: Mapping[str, bytes],
        delete: Iterable[str] = (),
        index: IndexEntry | None = None,
        append: Sequence[tuple[str, bytes]] = (),
    ) -> bool:
        """See `Persistence.write_if_unchanged`."""
        fields, gone = _flat(records), [key for key in dict.fromkeys(delete) if key not in records]
        require_place(partition, condition_key, *records, *gone, append=append)
        counts = [len(fields) // 2, len(gone)]
        head = [partition, condition_key, expected_value, *_entry(partition, index), self._log_limit, *counts]
        ours = records.get(condition_key)
        # Under an unchanged condition a repeated call would append once more.
        repeatable = not append or ours not in (None, expected_value)
        held, uncertain = self._call(_WRITE, partition, [*head, *fields, *gone], append, repeatable)
        return held == WRITTEN or (uncertain and ours is not None and held == ours)

    def delete_if_unchanged(
        self, partition: str, condition_key: str, expected_value: bytes, append: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """See `Persistence.delete_if_unchanged`. After a lost reply, a partition that is gone is success."""
        require_place(partition, condition_key, append=append)
        args = [partition, condition_key, expected_value, self._log_limit]
        held, uncertain = self._call(_DELETE, partition, args, append)
        return held == WRITTEN or (uncertain and held is None)

    def entry(self, partition: str) -> IndexEntry | None:
        """See `Persistence.entry`."""
        require_place(partition)
        key = self._keys(partition).entries
        data = self._link.repeat(lambda client: client.hget(key, partition))[0]
        return None if data is None else _decoded(partition, data)

    def due(self, before: float, limit: int = DEFAULT_LIMIT) -> list[IndexEntry]:
        """See `Persistence.due`."""
        ranges = self._each_shard(
            lambda pipe, keys: pipe.zrange(keys.due, "-inf", repr(before), byscore=True, withscores=True, offset=0, num=limit)
        )
        scored = [(float(score), shard, place) for shard, found in enumerate(ranges) for place, score in found]
        entries = self._entries([(shard, place) for _, shard, place in sorted(scored)[:limit]])
        # An entry may have been moved to a later time between the two reads.
        return [entry for entry in entries if entry.due is not None and entry.due <= before]

    def find(
        self,
        *,
        name: str | None = None,
        status: str | None = None,
        tag: str | None = None,
        awaits: str | None = None,
        limit: int = DEFAULT_LIMIT,
        after: IndexEntry | None = None,
    ) -> list[IndexEntry]:
        """See `Persistence.find`: one range over the narrowest of the given values, the others filtered from it."""
        require_text("the value", name, status, tag, awaits)
        start = _lookup_start(name, status, tag, awaits)
        behind = after.partition.encode() if after else None
        found: list[IndexEntry] = []
        while len(found) < limit:
            page = self._lookup(start, behind, limit)
            found += [entry for entry in self._entries(page) if entry.matches(name, status, tag, awaits)]
            if len(page) < limit:
                break
            behind = page[-1][1]
        return found[:limit]

    def read_log(self, name: str, after: str | None = None, limit: int = DEFAULT_LIMIT) -> list[LogEntry]:
        """See `Persistence.read_log`. The position holds the place reached in each of the log's 64 parts."""
        require_text("the log", name)
        reached = _reached(after) if after is not None else {}
        parts = self._each_shard(
            lambda pipe, keys: pipe.xrange(keys.log(name), min=f"({reached.get(str(keys.shard), '0-0')}", count=limit)
        )
        streams = [[(*_place(entry), shard, entry, fields[b"d"]) for entry, fields in part] for shard, part in enumerate(parts)]
        entries: list[LogEntry] = []
        for *_, shard, entry, data in islice(merge(*streams), limit):
            reached = {**reached, str(shard): entry.decode()}
            entries.append(LogEntry(json.dumps(reached), data))
        return entries

    def _keys(self, partition: str) -> Keys:
        return self._shards[shard_of(partition)]

    def _call(
        self, script: Script, partition: str, args: list[Any], append: Sequence[tuple[str, bytes]], repeatable: bool = True
    ) -> tuple[int | bytes | None, bool]:
        """`WRITTEN`, or what the condition holds instead; and whether an earlier try of the script may have taken effect."""
        keys = self._keys(partition)
        names = [keys.partition(partition), keys.due, keys.entries, keys.lookup, *(keys.log(log) for log, _ in append)]
        command = self._link.call(script, names, [*args, *(data for _, data in append)])
        return self._link.repeat(command) if repeatable else (self._link.run(command), False)

    def _each_shard(self, ask: Callable[[Pipeline, Keys], Any]) -> list[Any]:
        """The replies of all shards to one read, in one round trip."""

        def read(client: redis.Redis) -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                for keys in self._shards:
                    ask(pipe, keys)
                return pipe.execute()

        return self._link.repeat(read)[0]

    def _lookup(self, start: bytes, behind: bytes | None, limit: int) -> list[tuple[int, bytes]]:
        low = b"[" + start if behind is None else b"(" + start + behind
        high = b"(" + start[:-1] + b"\x01"
        ranges = self._each_shard(lambda pipe, keys: pipe.zrange(keys.lookup, low, high, bylex=True, offset=0, num=limit))
        found = [(member[len(start) :], shard) for shard, members in enumerate(ranges) for member in members]
        return [(shard, place) for place, shard in sorted(found)[:limit]]

    def _entries(self, places: list[tuple[int, bytes]]) -> list[IndexEntry]:
        """The entries at these partitions; one that has gone since is left out."""
        if not places:
            return []

        def read(client: redis.Redis) -> list[Any]:
            with client.pipeline(transaction=False) as pipe:
                for shard, place in places:
                    pipe.hget(self._shards[shard].entries, cast(str, place))
                return pipe.execute()

        stored = self._link.repeat(read)[0]
        return [_decoded(place.decode(), data) for (_, place), data in zip(places, stored, strict=True) if data is not None]


def _flat(records: Mapping[str, bytes]) -> list[str | bytes]:
    return [part for pair in records.items() for part in pair]


def _entry(partition: str, index: IndexEntry | None) -> tuple[str, str]:
    """The entry as the scripts take it: its JSON and its due time, both empty where there is none."""
    if index is None:
        return "", ""
    index.require_partition(partition)
    stored = {"n": index.name, "s": index.status, "t": index.tag, "m": index.summary, "d": index.due}
    if index.awaits is not None:
        stored["a"] = index.awaits
    return json.dumps(stored), "" if index.due is None else repr(float(index.due))


def _decoded(partition: str, data: bytes) -> IndexEntry:
    try:
        stored = json.loads(data)
        return IndexEntry(partition, stored["d"], stored["n"], stored["s"], stored["t"], stored["m"], stored.get("a"))
    except (ValueError, KeyError, TypeError) as trouble:
        raise PersistenceError(f"the index entry of partition {partition!r} is corrupt: restore it from a backup") from trouble


def _lookup_start(name: str | None, status: str | None, tag: str | None, awaits: str | None) -> bytes:
    for kind, value in (("a", awaits), ("t", tag), ("n", name), ("s", status)):
        if value is not None:
            return f"{kind}:{value}\x00".encode()
    return b"p:\x00"


def _reached(position: str) -> dict[str, str]:
    """The stream entry reached in each shard, from the position of a log entry."""
    try:
        reached = cast(dict[str, str], json.loads(position))
        for entry in reached.values():
            _place(entry.encode())
    except (ValueError, AttributeError) as trouble:
        raise ValueError(f"{position!r} is not a position of this log: hand back one that read_log gave") from trouble
    return reached


def _place(entry: bytes) -> tuple[int, int]:
    milliseconds, _, sequence = entry.partition(b"-")
    return int(milliseconds), int(sequence)
