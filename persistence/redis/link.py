"""The link to a Redis or Valkey server: our connection options, Lua by its hash, bounded retries, helpful errors.

The client library's own retries are off: it would send a command again without knowing whether the first one took effect.
Here a call is repeated only when its author says that repeating is safe, and the author learns that an earlier try may have
counted.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from importlib.resources import files
from typing import Any, cast
from weakref import finalize

import redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,  # noqa: A004
    NoScriptError,
    RedisError,
    TimeoutError,  # noqa: A004
)
from redis.retry import Retry

from persistence.redis.address import check_url
from persistence.redis.advice import advice

__all__ = ["CONNECT_TIMEOUT", "REPLY_TIMEOUT", "RETRY_DELAYS", "RedisLink", "Script", "connect", "load_script"]

CONNECT_TIMEOUT = 3.0
"""Seconds to wait for a connection."""
REPLY_TIMEOUT = 5.0
"""Seconds to wait for a reply; a blocking read must ask for less."""
RETRY_DELAYS = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds between tries of a safe call while the server does not answer (about 8 s in all, before jitter)."""

_WIRE_OPTIONS: dict[str, Any] = {
    "decode_responses": False,
    "encoding": "utf-8",
    "encoding_errors": "strict",
    "protocol": 2,
    "legacy_responses": True,
}
_OPTIONS: dict[str, Any] = {
    **_WIRE_OPTIONS,
    "socket_timeout": REPLY_TIMEOUT,
    "socket_connect_timeout": CONNECT_TIMEOUT,
    "health_check_interval": 30,
}
_FOREIGN_OPTIONS = {
    *_WIRE_OPTIONS,
    *("retry", "retry_on_error", "retry_on_timeout"),
    *("maint_notifications_config", "maint_notifications_pool_handler", "event_dispatcher", "himport_registry"),
}
"""Options of a client handed in that ours replace, or that belong to its pool and its protocol alone."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the hash by which the server knows it once loaded."""

    source: bytes
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", sha1(self.source, usedforsecurity=False).hexdigest())


def load_script(package: str, *names: str) -> Script:
    """The Lua files ``lua/<name>.lua`` of a package, joined in the given order (a prelude first)."""
    folder = files(package) / "lua"
    return Script(b"\n".join((folder / f"{name}.lua").read_bytes() for name in names))


def connect(url: str, **options: Any) -> redis.Redis:
    """A client for ``redis://``, ``rediss://`` or ``unix://`` with our options; connects at the first command.

    Raises ValueError that names the part of the URL that is wrong.
    """
    check_url(url)
    client = redis.Redis.from_url(url, **{**_OPTIONS, "retry": _no_retry(), **options})
    try:
        client.connection_pool.make_connection()  # reads the options, and does not connect yet
    except (TypeError, RedisError) as trouble:
        raise ValueError(f"cannot use this Redis URL: an option in its query is wrong ({trouble})") from None
    return client


def _no_retry() -> Retry:
    return Retry(NoBackoff(), 0)


class RedisLink:
    """One server, spoken to with our options whatever client was handed in, and with the errors of one room.

    ``error`` is the room's error for trouble with the server, ``unreachable`` the one for a server that does not answer.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        error: type[Exception],
        unreachable: type[Exception] | None = None,
        retry_delays: Sequence[float] = RETRY_DELAYS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        _require_client(client, error)
        self.client = _with_our_options(client)
        if self.client is not client:
            # Nobody else can close these connections; left to the garbage collector, each socket would be warned of.
            finalize(self, self.client.connection_pool.disconnect)
        self._error = error
        self._unreachable = unreachable or error
        self._retry_delays = retry_delays
        self._sleep = sleep

    def run(self, command: Callable[[redis.Redis], Any]) -> Any:
        """Run a command once; trouble becomes this room's error. For blocking reads and what must not be repeated."""
        try:
            return command(self.client)
        except (RedisError, OSError) as trouble:
            raise self._explained(trouble) from trouble

    def repeat(self, command: Callable[[redis.Redis], Any]) -> tuple[Any, bool]:
        """Run a command that is safe to repeat until the server answers, a bounded number of times.

        Returns the reply and whether an earlier try may have taken effect (its reply was lost).
        """
        uncertain = False
        for delay in self._retry_delays:
            try:
                return command(self.client), uncertain
            except (ConnectionError, TimeoutError, OSError) as trouble:
                if isinstance(trouble, AuthenticationError):
                    raise self._explained(trouble) from trouble
                uncertain = uncertain or not isinstance(trouble, BusyLoadingError)
                self._sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
            except RedisError as trouble:
                raise self._explained(trouble) from trouble
        return self.run(command), uncertain

    def call(
        self, script: Script, keys: Sequence[str | bytes], args: Sequence[str | bytes | int | float]
    ) -> Callable[[redis.Redis], Any]:
        """A script call as a command for `run` or `repeat`: by hash, loaded again after the server forgot it."""

        def command(client: redis.Redis) -> Any:
            try:
                return client.evalsha(script.sha, len(keys), *keys, *args)  # pyright: ignore[reportArgumentType]
            except NoScriptError:
                return client.eval(cast(str, script.source), len(keys), *keys, *args)  # pyright: ignore[reportArgumentType]

        return command

    def _explained(self, trouble: Exception) -> Exception:
        if isinstance(trouble, BusyLoadingError):
            return self._unreachable(f"the Redis server at {self.address} is still loading its data: try again in a moment")
        if isinstance(trouble, ConnectionError | TimeoutError | OSError) and not isinstance(trouble, AuthenticationError):
            return self._unreachable(
                f"no answer from the Redis server at {self.address}: start it or correct its URL ({trouble})"
            )
        return self._error(advice(trouble))

    @property
    def address(self) -> str:
        """Where the server is, without credentials."""
        options = self.client.connection_pool.connection_kwargs
        return str(options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}")


def _require_client(client: object, error: type[Exception]) -> None:
    """Refuse what has the methods of a client and another meaning: a queue of commands, a coroutine client, a cluster."""
    if isinstance(client, Pipeline) or not isinstance(client, redis.Redis):
        raise error(f"a {type(client).__name__} cannot serve as the connection: hand in a redis.Redis client")


def _with_our_options(client: redis.Redis) -> redis.Redis:
    """The same address with bytes in and out and no hidden retries; other kinds of pool (Sentinel) are kept as they are."""
    pool = client.connection_pool
    if type(pool) not in (redis.ConnectionPool, redis.BlockingConnectionPool):
        return client
    options = {name: value for name, value in pool.connection_kwargs.items() if name not in _FOREIGN_OPTIONS}
    ours = redis.ConnectionPool(connection_class=pool.connection_class, **options, **_WIRE_OPTIONS, retry=_no_retry())
    return redis.Redis(connection_pool=ours)
