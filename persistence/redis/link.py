"""The link to Redis or Valkey: our own client, Lua by its hash, bounded retries, helpful errors.

A call is repeated only when its author says that repeating is safe, and the author learns that an earlier try may have
counted. The client library repeats nothing (`persistence.redis.clients`).
"""

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from importlib.resources import files
from typing import Any, cast
from weakref import finalize

import redis
from redis.exceptions import BusyLoadingError, NoScriptError, ReadOnlyError, ResponseError

from persistence.redis.advice import advice, lacks_right_in_script
from persistence.redis.clients import Client, own_servers
from persistence.redis.trouble import TROUBLE, Effect, effect_of, root_of

__all__ = ["RETRY_DELAYS", "RedisLink", "Script", "load_script", "missing_rights"]

RETRY_DELAYS = (0.05, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)
"""Seconds between tries of a safe call while the server does not answer (10 to 14 s in all): long enough for a failover."""
LONGEST = 15.0
"""Seconds after which no further try begins, however few there were: those of a server that is silent take long."""

_COMMAND = re.compile(rb"redis\.call\('([A-Z]+)'")


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the hash by which the server knows it once loaded."""

    source: bytes
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", sha1(self.source, usedforsecurity=False).hexdigest())

    @property
    def commands(self) -> list[str]:
        """The commands that it calls, in the order of the alphabet."""
        return sorted({name.decode() for name in _COMMAND.findall(self.source)})


def load_script(package: str, *names: str) -> Script:
    """The Lua files ``lua/<name>.lua`` of a package, joined in the given order (a prelude first)."""
    folder = files(package) / "lua"
    return Script(b"\n".join((folder / f"{name}.lua").read_bytes() for name in names))


_RIGHTS = load_script("persistence.redis", "missing_rights")


class RedisLink:
    """The servers, spoken to with our options whatever client was handed in, and with the errors of one room.

    ``error`` is the room's error for trouble with the server, ``unreachable`` the one for a server that does not answer.
    """

    def __init__(
        self,
        client: Client,
        *,
        error: type[Exception],
        unreachable: type[Exception] | None = None,
        retry_delays: Sequence[float] = RETRY_DELAYS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._servers = own_servers(client, error)
        # Nobody else can close these connections; left to the garbage collector, each socket would be warned of.
        finalize(self, self._servers.close)
        self._error = error
        self._unreachable = unreachable or error
        self._retry_delays = retry_delays
        self._sleep = sleep

    @property
    def client(self) -> redis.Redis:
        """The client: that of a cluster connects when it is first asked for."""
        return self._servers.client

    @property
    def address(self) -> str:
        """Where the server is, or the servers are, without credentials."""
        return self._servers.name.rpartition(" ")[2]

    @property
    def reply_timeout(self) -> float | None:
        """Seconds after which a silent server counts as lost; None for never. A blocking read must ask for less."""
        return self._servers.timeout

    def run(self, command: Callable[[redis.Redis], Any]) -> Any:
        """Run a command once; trouble becomes this room's error. For blocking reads and what must not be repeated."""
        try:
            return command(self._servers.client)
        except TROUBLE as trouble:
            self._after(trouble)
            raise self._explained(trouble) from trouble

    def run_on_each(self, command: Callable[[redis.Redis], Any]) -> dict[str, Any]:
        """Run a command once on the server, or on every primary of a cluster: the replies by address."""

        def each(_: redis.Redis) -> dict[str, Any]:
            return {address: command(client) for address, client in self._servers.each().items()}

        return cast("dict[str, Any]", self.run(each))

    def repeat(self, command: Callable[[redis.Redis], Any]) -> tuple[Any, bool]:
        """Run a command that is safe to repeat until the server answers, a bounded number of times.

        Returns the reply and whether an earlier try may have taken effect (its reply was lost). Once that is so, whatever the
        last try meets is told as ``unreachable``: the outcome is unknown, also where the last try itself was refused.
        """
        uncertain, deadline = False, time.monotonic() + LONGEST
        for delay in (*self._retry_delays, None):
            try:
                return command(self._servers.client), uncertain
            except TROUBLE as trouble:
                effect = effect_of(trouble)
                self._after(trouble)
                if delay is None or effect is Effect.REFUSED or time.monotonic() > deadline:
                    raise self._explained(trouble, uncertain=uncertain) from trouble
                uncertain = uncertain or effect is Effect.UNKNOWN
                self._sleep(delay * random.uniform(0.7, 1.0))  # noqa: S311 - jitter, not a secret
        raise AssertionError("the last try returns or raises")

    def call(
        self, script: Script, keys: Sequence[str | bytes], args: Sequence[str | bytes | int | float]
    ) -> Callable[[redis.Redis], Any]:
        """A script call as a command for `run` or `repeat`: by hash, loaded again after the server forgot it."""

        def command(client: redis.Redis) -> Any:
            try:
                return _evaluate(client, script, keys, args)
            except ResponseError as trouble:
                if not lacks_right_in_script(trouble):
                    raise
                raise _named(trouble, client, script, keys[0]) from trouble

        return command

    def _after(self, trouble: Exception) -> None:
        if isinstance(trouble, ReadOnlyError):
            self._servers.reconnect()

    def _explained(self, trouble: Exception, *, uncertain: bool = False) -> Exception:
        """The room's error. ``uncertain``: the reply to an earlier try was lost."""
        root, name = root_of(trouble), self._servers.name
        if isinstance(root, BusyLoadingError):
            return self._unreachable(f"the Redis {name} is still loading its data: try again in a moment")
        if effect_of(root) is Effect.UNKNOWN:
            return self._unreachable(f"no answer from the Redis {name}: start it or correct its URL ({root})")
        if uncertain:
            words = advice(root).removesuffix("; nothing was written")
            return self._unreachable(f"{words}; an earlier reply was lost: whether the call took effect is unknown")
        return self._error(advice(root))


def _evaluate(client: redis.Redis, script: Script, keys: Sequence[str | bytes], args: Sequence[Any]) -> Any:
    try:
        return client.evalsha(script.sha, len(keys), *keys, *args)  # pyright: ignore[reportArgumentType]
    except NoScriptError:
        return client.eval(cast(str, script.source), len(keys), *keys, *args)  # pyright: ignore[reportArgumentType]


def missing_rights(client: redis.Redis, key: str | bytes, commands: Sequence[str]) -> list[str]:
    """The commands that the client's user may not call on this key from a script. Changes nothing."""
    lacking = cast(list[bytes], client.eval(cast(str, _RIGHTS.source), 0, cast(str, key), *commands))
    return [name.decode() for name in lacking]


def _named(trouble: ResponseError, client: redis.Redis, script: Script, key: str | bytes) -> ResponseError:
    """The same trouble with the commands that are lacking: servers say only that a script met one."""
    return type(trouble)(f"{trouble}; missing: {', '.join(missing_rights(client, key, script.commands))}")
