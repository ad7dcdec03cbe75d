"""A pool of simulated threads: the branches of a fork, side by side, each a task of the schedule."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from tests.simulation.scheduler import is_simulated, pause, spawn

__all__ = ["BatonPool"]


@dataclass(eq=False, slots=True)
class _Result:
    """What a call returns or raises. Whoever waits for it passes the baton on."""

    held: bool = True
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """See `concurrent.futures.Future.result`."""
        while self.held:
            pause(self)
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(eq=False, slots=True)
class _Room:
    """How many calls may be under way."""

    free: int

    @property
    def held(self) -> bool:
        """Whether one more has to wait."""
        return self.free < 1


class BatonPool:
    """Stands in for `ThreadPoolExecutor`. Outside a schedule each call is made at once."""

    def __init__(self, max_workers: int, thread_name_prefix: str = "") -> None:
        self._room = _Room(max_workers)
        self._results: list[_Result] = []

    def submit(self, call: Callable[..., Any], *args: Any) -> _Result:
        """Begin a call; it runs when it is chosen, and as soon as there is room."""
        result = _Result()
        work = partial(self._work, result, partial(call, *args))
        if is_simulated():
            self._results.append(result)
            spawn(work, f"/{len(self._results)}")
        else:
            work()
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for result in self._results:
            while result.held:
                pause(result)

    def _work(self, result: _Result, call: Callable[[], Any]) -> None:
        try:
            while self._room.held:
                pause(self._room)
            self._room.free -= 1
            try:
                result.value = call()
            finally:
                self._room.free += 1
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            result.error = error
        result.held = False
