"""Wake-ups in one short stream of Redis or Valkey, on which each process that waits listens once.

key             type    what                                                            written by
jarvis:settled  stream  r (workflow id/run id) of runs that were settled lately; ends   whoever settles a run
                        within a minute after the last one

One connection and one thread serve all waiters of a process, and end when nobody has waited for a while. The listener begins
with what the stream holds, after every trouble anew: a wake-up for nothing costs one look, one that is missed costs seconds.
"""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import redis
import structlog

from persistence.redis import Client, RedisLink
from workers.errors import WorkersError
from workers.waking.contract import Wake
from workers.waking.ears import Ears, ear_of

__all__ = ["BLOCK", "DEFAULT_KEY", "KEPT", "LINGER", "RedisWakeUps"]

DEFAULT_KEY = "jarvis:settled"
KEPT = 1000
"""Wake-ups that the stream holds, about."""
KEEP_FOR = 60
"""Seconds after which they go, unless others follow: half as long at least after each. A second trip each time is too much."""
BLOCK = 1.0
"""Seconds of one blocking read."""
LINGER = 10.0
"""Seconds for which the listener stays when nobody waits: the next waiter may come soon."""
AGAIN_AFTER = 0.5
"""Seconds after which a listener that met trouble tries again."""
_BEGINNING = "0-0"

_log = structlog.get_logger(__name__)


class RedisWakeUps:
    """`WakeUps` over one stream."""

    look_every = 2.0

    def __init__(self, client: Client, key: str = DEFAULT_KEY, *, linger: float = LINGER) -> None:
        self._client = client
        self._link = self._new_link()
        self._key = key
        self._linger = linger
        self._ears = Ears()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._needed = 0.0
        self._expire_at = 0.0
        self._closed = False

    def tell(self, workflow_id: str, run_id: str) -> None:
        """See `WakeUps.tell`. Tried once: a worker has better things to do than to wait for this."""
        fields: dict[Any, Any] = {"r": ear_of(workflow_id, run_id)}

        def send(client: redis.Redis) -> None:
            client.xadd(self._key, fields, maxlen=KEPT, approximate=True)
            if time.monotonic() >= self._expire_at:
                client.expire(self._key, KEEP_FOR)
                self._expire_at = time.monotonic() + KEEP_FOR / 2

        try:
            self._link.run(send)
        except WorkersError as trouble:
            _log.debug("a wake-up was not sent; whoever waits looks by itself", trouble=str(trouble))

    @contextmanager
    def listening(self, workflow_id: str, run_id: str, wake: Wake) -> Generator[None]:
        """See `WakeUps.listening`."""
        ear = ear_of(workflow_id, run_id)
        self._ears.add(ear, wake)
        try:
            self._listen()
            yield
        finally:
            self._ears.remove(ear, wake)

    def close(self) -> None:
        """Listen no more: the thread and its connection end within one blocking read."""
        self._closed = True

    def _new_link(self) -> RedisLink:
        return RedisLink(self._client, error=WorkersError)

    def _listen(self) -> None:
        """See to it that a thread listens."""
        with self._lock:
            self._needed = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="wake-ups", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        # A connection of its own: a blocking read holds it all the time.
        link, after = self._new_link(), _BEGINNING
        while self._is_needed():
            try:
                after = self._hear(link, after)
            except WorkersError as trouble:
                _log.debug("no wake-ups are heard; whoever waits looks by itself", trouble=str(trouble))
                after = _BEGINNING
                time.sleep(AGAIN_AFTER)

    def _is_needed(self) -> bool:
        """Whether to listen on. The thread that is told no ends, and the next waiter starts another one."""
        with self._lock:
            now = time.monotonic()
            if self._ears:
                self._needed = now
            if not self._closed and now - self._needed <= self._linger:
                return True
            self._thread = None
            return False

    def _hear(self, link: RedisLink, after: str) -> str:
        """Read what has come, after so many seconds at most, and wake. Returns up to where."""
        block = int(min(BLOCK, (link.reply_timeout or BLOCK * 2) / 2) * 1000)
        reply = link.run(lambda client: client.xread({self._key: after}, count=KEPT, block=max(block, 1)))
        for entry, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", reply[0][1] if reply else []):
            after = entry.decode()
            self._ears.wake(fields.get(b"r", b"").decode(errors="replace"))
        return after
