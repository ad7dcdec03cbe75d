"""Heartbeats in the memory of one process."""

import datetime as dt
import threading

from mesh.heartbeats.beats import check_beat, newest
from workflow.clock import Clock, SystemClock

__all__ = ["InMemoryHeartbeatStore"]


class InMemoryHeartbeatStore:
    """`mesh.ports.JarvisHeartbeatStore` in a dictionary. ``clock`` is the one that beats are held against."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._seen: dict[str, dt.datetime] = {}

    def beat(self, agent: str, at: dt.datetime | None = None) -> None:
        """See `JarvisHeartbeatStore.beat`."""
        check_beat(agent, at)
        with self._lock:
            self._seen[agent] = newest(self._seen.get(agent), at, self._clock.now()).astimezone(dt.UTC)

    def last_seen(self, agent: str) -> dt.datetime | None:
        """See `JarvisHeartbeatStore.last_seen`."""
        with self._lock:
            return self._seen.get(agent)

    def all(self) -> dict[str, dt.datetime]:
        """See `JarvisHeartbeatStore.all`."""
        with self._lock:
            return dict(self._seen)

    def forget(self, agent: str, seen: dt.datetime) -> bool:
        """See `JarvisHeartbeatStore.forget`."""
        with self._lock:
            if self._seen.get(agent) != seen:
                return False
            del self._seen[agent]
            return True
