"""What the servers of the store say of themselves. It only reads, and what its user may not see is left out, not an error."""

import time
from collections.abc import Callable
from typing import Any, cast

import redis
from redis.exceptions import NoPermissionError, ResponseError

from console.health.findings import ServerFacts
from persistence.redis import CONNECTION_RIGHTS, STORE_RIGHTS, RedisLink, missing_rights

__all__ = ["NEEDS", "read_servers"]

_NO_KEY_FIRST = ("eval", "evalsha")
"""Commands that are proven by asking for the others: the question is a script."""

NEEDS = {
    "jarvis:workflow:{0}:p:": (*CONNECTION_RIGHTS, *(name for name in STORE_RIGHTS if name not in _NO_KEY_FIRST)),
    "jarvis:alerts:{0}:p:": tuple(name for name in STORE_RIGHTS if name not in _NO_KEY_FIRST),
    "jarvis:history:{0}:p:": tuple(name for name in STORE_RIGHTS if name not in _NO_KEY_FIRST),
    "{jarvis:signals}:facts": (
        *("exists", "expire", "get", "set", "time", "xack", "xadd", "xautoclaim", "xclaim", "xdel", "xgroup|create"),
        *("xgroup|delconsumer", "xinfo|consumers", "xinfo|groups", "xlen", "xpending", "xrange", "xread", "xreadgroup"),
        *("xrevrange", "xtrim", "zadd", "zcard", "zrange", "zrangebyscore", "zrem"),
    ),
    "{jarvis:channel:w}:frames": ("expire", "hget", "hmget", "hset", "xadd", "xdel", "xrange", "xread"),
    "{jarvis:limits}:w": ("time", "zadd", "zcard", "zrange", "zrem", "zremrangebyscore", "zscore"),
    "jarvis:heartbeats:seen": ("hdel", "hget", "hgetall", "hset", "time"),
    "jarvis:knowledge:": ("get", "set"),
    "jarvis:settled": ("expire", "xadd", "xread"),
}
"""What each family of keys needs (runs, alerts, history, signals, frames, limits, heartbeats, notes, wake-ups): commands by
a key on which they are called."""


def read_servers(link: RedisLink) -> list[ServerFacts]:
    """The facts of the server, or of every primary of a cluster. Raises `PersistenceError` when one does not answer."""
    return [_facts(*server) for server in link.run_on_each(_read).items()]


def _read(client: redis.Redis) -> dict[str, Any]:
    return {
        "time": _seen(client, _clock_ahead),
        "info": _seen(client, lambda one: one.info()),
        "fsync": _seen(client, lambda one: one.config_get("appendfsync")),
        **_scripts(client),
    }


def _seen(client: redis.Redis, read: Callable[[redis.Redis], Any]) -> Any:
    """What there is to read, or None where the user may not look."""
    try:
        return read(client)
    except NoPermissionError:
        return None


def _clock_ahead(client: redis.Redis) -> float:
    asked = time.time()
    seconds, microseconds = client.time()
    return seconds + microseconds / 1e6 - asked


def _scripts(client: redis.Redis) -> dict[str, Any]:
    """Whether scripts run, and what the user may not do; both by a script that touches no key."""
    try:
        found = {key: missing_rights(client, key, commands) for key, commands in NEEDS.items()}
    except ResponseError as refused:
        return {"scripts": f"refused ({refused})", "missing": None}
    return {"scripts": None, "missing": [f"{name} on {key}" for key, names in found.items() for name in names]}


def _facts(address: str, seen: dict[str, Any]) -> ServerFacts:
    policy = cast("dict[Any, Any] | None", seen["fsync"]) or {}
    return ServerFacts(
        address, seen["info"], _text(policy.get("appendfsync")), seen["time"], seen["missing"], scripts=seen["scripts"]
    )


def _text(value: object) -> str | None:
    return value.decode() if isinstance(value, bytes) else cast("str | None", value)
