"""Waiting out trouble with the server: the same call again until it is answered, and two lines of log, not one per try."""

import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from structlog.typing import FilteringBoundLogger

from bus.driving import Driver
from bus.errors import BusError

__all__ = ["RECONNECT_DELAY", "PatientDriver"]

RECONNECT_DELAY = 1.0
"""Seconds between tries while the bus is in trouble."""

P = ParamSpec("P")
T = TypeVar("T")


class PatientDriver:
    """A driver whose bus calls do not fail while nobody asks to stop; then the trouble is raised.

    An outcome that cannot be told to the bus is thus told when it is back, so that what was handled is not handled again.
    """

    def __init__(self, inner: Driver, stopping: threading.Event, log: FilteringBoundLogger) -> None:
        self._inner = inner
        self._stopping = stopping
        self._log = log
        self._troubled = False
        self._lock = threading.Lock()

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """See `bus.driving.Driver.call`."""
        while True:
            try:
                result = await self._inner.call(function, *args, **kwargs)
            except BusError as trouble:
                if self._stopping.is_set():
                    raise
                self._begin(trouble)
                await self._inner.call(self._stopping.wait, RECONNECT_DELAY)
            else:
                self._end()
                return result

    async def handle(self, handler: Callable[..., Any], value: object) -> None:
        """See `bus.driving.Driver.handle`."""
        await self._inner.handle(handler, value)

    async def together(self, works: Sequence[Callable[[], Coroutine[Any, Any, T]]], most: int) -> list[T]:
        """See `bus.driving.Driver.together`."""
        return await self._inner.together(works, most)

    def _begin(self, trouble: BusError) -> None:
        with self._lock:
            if not self._troubled:
                self._log.warning("bus trouble, trying again until it is over", trouble=str(trouble))
            self._troubled = True

    def _end(self) -> None:
        with self._lock:
            if self._troubled:
                self._log.info("bus trouble is over")
            self._troubled = False
