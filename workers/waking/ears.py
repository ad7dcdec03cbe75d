"""Who waits for which run in this process."""

import threading
from collections import defaultdict

from workers.waking.contract import Wake

__all__ = ["Ears", "ear_of"]


def ear_of(workflow_id: str, run_id: str) -> str:
    """What a run is called in wake-ups."""
    return f"{workflow_id}/{run_id}"


class Ears:
    """The wakes of this process by run, under a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: defaultdict[str, list[Wake]] = defaultdict(list)

    def add(self, ear: str, wake: Wake) -> None:
        """Begin to call ``wake`` for a run."""
        with self._lock:
            self._wakes[ear].append(wake)

    def remove(self, ear: str, wake: Wake) -> None:
        """Call it no more."""
        with self._lock:
            self._wakes[ear].remove(wake)
            if not self._wakes[ear]:
                del self._wakes[ear]

    def wake(self, ear: str) -> None:
        """Wake all that wait for a run."""
        with self._lock:
            wakes = list(self._wakes.get(ear, ()))
        for wake in wakes:
            wake()

    def __bool__(self) -> bool:
        return bool(self._wakes)
