"""The ledger in Redis or Valkey: the handler queues commands, which one MULTI executes together with the record.

key                          type     what                                                  written by
<prefix><group>:<signal id>  string   when it was handled, seconds of the consumer's clock  RedisLedger.once

Redis executes a transaction whole or not at all, but does not undo: a queued command that it refuses for what a key holds
(a list where it wants a number) has no effect, the others have, and the signal counts as handled.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from redis.client import Pipeline

from bus.errors import BusError, BusUnreachableError
from bus.ledgers.contract import KEEP
from persistence.redis import Client, RedisLink

__all__ = ["DEFAULT_PREFIX", "RedisLedger"]

DEFAULT_PREFIX = "jarvis:handled:"


class RedisLedger:
    """`bus.ledgers.Ledger` in the server of ``client``. The transaction is a pipeline: queue commands, execute nothing.

    A record is kept for ``keep`` seconds. In a Cluster ``prefix`` must hold the hash tag of the keys that handlers write,
    for only keys of one slot can be written together.
    """

    def __init__(
        self,
        client: Client,
        prefix: str = DEFAULT_PREFIX,
        *,
        keep: float = KEEP,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._link = RedisLink(client, error=BusError, unreachable=BusUnreachableError)
        self._prefix = prefix
        self._keep = max(int(keep), 1)
        self._now = now

    @contextmanager
    def once(self, group: str, signal_id: str) -> Generator[Pipeline | None]:
        """See `bus.ledgers.Ledger.once`. Raises `BusError` for trouble with the server; the outcome is then unknown to us.

        It is known to the server: the next delivery finds the record, or does not.
        """
        key = f"{self._prefix}{group}:{signal_id}"
        with self._link.client.pipeline(transaction=True) as pipe:
            if self._link.run(lambda _: _watched(pipe, key)):
                yield None
                return
            pipe.multi()
            yield pipe
            pipe.set(key, str(self._now()), ex=self._keep)
            self._link.run(lambda _: pipe.execute())


def _watched(pipe: Pipeline, key: str) -> bool:
    """Whether the record is there; if not, its appearance before the end makes the transaction fail."""
    pipe.watch(key)
    return bool(pipe.exists(key))
