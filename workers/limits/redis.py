"""Slots in Redis or Valkey.

key              type        what                                                              written by
<prefix><limit>  sorted set  holder -> end of its lease, milliseconds of the server's clock    take.lua, ZREM

The prefix bears a hash tag, so that one script may take a slot of several limits, also in a Cluster.
"""

from collections.abc import Mapping
from typing import cast

from persistence.redis import Client, RedisLink, load_script
from workers.errors import WorkersError

__all__ = ["DEFAULT_PREFIX", "RedisSlots"]

DEFAULT_PREFIX = "{jarvis:limits}:"

_TAKE = load_script("workers.limits", "take")


class RedisSlots:
    """`Slots` in one sorted set for each limit."""

    def __init__(self, client: Client, prefix: str = DEFAULT_PREFIX) -> None:
        self._link = RedisLink(client, error=WorkersError)
        self._prefix = prefix

    def take(self, limits: Mapping[str, int], holder: str, lease: float) -> float | None:
        """See `Slots.take`. Repeated when a reply is lost, which is safe: what is held is extended."""
        names = list(limits)
        call = self._link.call(_TAKE, self._keys(names), [holder, int(lease * 1000), *(limits[name] for name in names)])
        wait = cast(int, self._link.repeat(call)[0])
        return None if wait < 0 else wait / 1000

    def give_back(self, limits: Mapping[str, int], holder: str) -> None:
        """See `Slots.give_back`."""
        keys = self._keys(limits)
        self._link.repeat(lambda client: [client.zrem(key, holder) for key in keys])

    def _keys(self, names: "Mapping[str, int] | list[str]") -> list[str]:
        return [f"{self._prefix}{name}" for name in names]
