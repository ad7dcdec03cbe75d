"""Slots in the memory of one process."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

__all__ = ["InMemorySlots"]


class InMemorySlots:
    """`Slots` under one lock. ``now`` gives seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._held: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def take(self, limits: Mapping[str, int], holder: str, lease: float) -> float | None:
        """See `Slots.take`."""
        with self._lock:
            now = self._now()
            waits = [wait for name, limit in limits.items() if (wait := self._wait(name, limit, holder, now)) is not None]
            if waits:
                return max(waits)
            for name in limits:
                self._held[name][holder] = now + lease
            return None

    def give_back(self, limits: Mapping[str, int], holder: str) -> None:
        """See `Slots.give_back`."""
        with self._lock:
            for name in limits:
                self._held[name].pop(holder, None)

    def _wait(self, name: str, limit: int, holder: str, now: float) -> float | None:
        live = {one: until for one, until in self._held[name].items() if until > now}
        self._held[name] = live
        runs = {_run_of(one) for one in live}
        return min(live.values(), default=now) - now if _run_of(holder) not in runs and len(runs) >= limit else None


def _run_of(holder: str) -> str:
    return holder.rpartition("/")[0] or holder
