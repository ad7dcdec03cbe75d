"""Heartbeats in Redis or Valkey.

key             type  what                                                    written by
<prefix>seen    hash  agent -> last beat, microseconds since 1970 in UTC      beat.lua, forget.lua
"""

import datetime as dt
from typing import cast

from mesh.heartbeats.beats import check_beat, from_microseconds, to_microseconds
from mesh.heartbeats.errors import HeartbeatStoreError
from persistence.redis import Client, RedisLink, load_script

__all__ = ["DEFAULT_PREFIX", "RedisHeartbeatStore"]

DEFAULT_PREFIX = "jarvis:heartbeats:"

_BEAT = load_script("mesh.heartbeats", "beat")
_FORGET = load_script("mesh.heartbeats", "forget")


class RedisHeartbeatStore:
    """`mesh.ports.JarvisHeartbeatStore` in one hash, by the server's clock. ``client`` gives the address."""

    def __init__(self, client: Client, prefix: str = DEFAULT_PREFIX) -> None:
        self._link = RedisLink(client, error=HeartbeatStoreError)
        self._key = f"{prefix}seen"

    def beat(self, agent: str, at: dt.datetime | None = None) -> None:
        """See `JarvisHeartbeatStore.beat`. Repeated when a reply is lost, which is safe: the newest wins."""
        check_beat(agent, at)
        self._link.repeat(self._link.call(_BEAT, [self._key], [agent, "" if at is None else to_microseconds(at)]))

    def last_seen(self, agent: str) -> dt.datetime | None:
        """See `JarvisHeartbeatStore.last_seen`."""
        check_beat(agent, None)
        stored = cast(bytes | None, self._link.repeat(lambda client: client.hget(self._key, agent))[0])
        return None if stored is None else self._moment(agent, stored)

    def all(self) -> dict[str, dt.datetime]:
        """See `JarvisHeartbeatStore.all`."""
        stored = cast(dict[bytes, bytes], self._link.repeat(lambda client: client.hgetall(self._key))[0])
        return {agent.decode(): self._moment(agent.decode(), moment) for agent, moment in stored.items()}

    def forget(self, agent: str, seen: dt.datetime) -> bool:
        """See `JarvisHeartbeatStore.forget`."""
        forget = self._link.call(_FORGET, [self._key], [agent, to_microseconds(seen)])
        forgotten, uncertain = self._link.repeat(forget)
        return bool(forgotten) or uncertain

    def _moment(self, agent: str, stored: bytes) -> dt.datetime:
        try:
            return from_microseconds(int(stored))
        except (ValueError, OverflowError) as trouble:
            raise HeartbeatStoreError(
                f"the last beat of {agent!r:.80} in {self._key!r} is corrupt: remove that field"
            ) from trouble
