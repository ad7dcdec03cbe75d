"""Doing something again and again in a thread, beside what a process is for: what takes long there delays nothing here."""

import threading
from collections.abc import Callable

__all__ = ["Beside"]


class Beside:
    """Calls ``do`` every ``every`` seconds. Whatever it may raise is its own to see to."""

    def __init__(self, name: str, do: Callable[[], object], *, every: float) -> None:
        self._do = do
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until the last call is over."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._do()
            self._stopping.wait(self._every)
