"""Locks, conditions and threads for simulated processes: whoever has to wait passes the baton on."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation.scheduler import is_simulated, pause, spawn

__all__ = ["BatonLock", "BatonThreading"]


class BatonLock:
    """A lock that never blocks a real thread."""

    def __init__(self) -> None:
        self.held = False
        self._wanted = 0

    def acquire(self) -> bool:
        """Take the lock, after others if need be."""
        while self.held:
            _require_schedule()
            self._wanted += 1
            try:
                pause(self)
            finally:
                self._wanted -= 1
        self.held = True
        return True

    def release(self) -> None:
        """Give it back. Whoever waits may take it at once: else a task that pauses only inside the lock would keep it."""
        self.held = False
        if self._wanted:
            pause()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(slots=True)
class _Waiting:
    held: bool = True


class BatonCondition(BatonLock):
    """A condition; only `wait_for` without a time-out, for nothing here may depend on real time."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[_Waiting] = []

    def wait_for(self, predicate: Callable[[], Any], timeout: None = None) -> Any:
        """Wait, without the lock, until the predicate holds."""
        assert timeout is None, "nothing here may depend on real time"
        while not (value := predicate()):
            _require_schedule()
            waiting = _Waiting()
            self._waiting.append(waiting)
            self.release()
            try:
                pause(waiting)
            finally:
                self.acquire()
        return value

    def notify_all(self) -> None:
        """Let everybody who waits look again."""
        for waiting in self._waiting:
            waiting.held = False
        self._waiting.clear()


class BatonThread:
    """A thread that is one more task of the schedule."""

    def __init__(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        name: str = "",
        daemon: bool = True,
    ) -> None:
        self._work = lambda: target(*args, **(kwargs or {}))

    def start(self) -> None:
        """Begin; it runs when it is chosen."""
        _require_schedule()
        spawn(self._work)


class BatonThreading:
    """Stands in for the module `threading` in code under exploration; everything else is the real thing."""

    Lock = BatonLock
    Condition = BatonCondition
    Thread = BatonThread

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


def _require_schedule() -> None:
    if not is_simulated():
        raise RuntimeError("only tasks of a schedule may wait for each other: act in a scenario's script")
