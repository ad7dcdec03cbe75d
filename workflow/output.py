"""Where a segment's live items go: nowhere, or over a bounded hand-over to whoever reads them.

A slow reader slows the run: a node that has an item to give waits until the one before it has been taken.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from workflow.errors import WorkflowError

__all__ = ["STOPPED", "End", "HandOver", "Monitor", "NoOutput", "Outlet", "Output"]

R = TypeVar("R")
STOPPED = "the consumer stopped before the run settled: run() recovers it"


class Output(Protocol):
    """Takes live items. Each way to hand one over raises `WorkflowError` once their reader has gone: the run is failed then."""

    def put(self, item: Any) -> None:
        """Hand over one item, waiting for room. Blocks; not for an event loop's thread."""
        ...

    async def put_async(self, item: Any) -> None:
        """Hand over one item, awaiting room; no thread is held meanwhile."""
        ...

    def put_at_once(self, item: Any) -> None:
        """Hand over one item without waiting, for code on an event loop."""
        ...


class Outlet(Output, Protocol):
    """An output at the reader's end: one may wait for room first, and hand over later."""

    def wait_for_room(self) -> None:
        """Return when the reader has taken everything. Blocks. Raises `WorkflowError` once the reader has gone."""
        ...

    async def wait_for_room_async(self) -> None:
        """`wait_for_room` for an event loop."""
        ...


class NoOutput:
    """Nobody reads."""

    def put(self, item: Any) -> None:
        """See `Output.put`."""

    async def put_async(self, item: Any) -> None:
        """See `Output.put_async`."""

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""

    def wait_for_room(self) -> None:
        """See `Outlet.wait_for_room`."""

    async def wait_for_room_async(self) -> None:
        """See `Outlet.wait_for_room_async`."""


class Monitor:
    """A lock, and the news that what it guards has changed: threads wait for that, tasks await it, of any loop."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._awaiting: list[asyncio.Future[None]] = []

    def __enter__(self) -> None:
        self._changed.acquire()

    def __exit__(self, *_: object) -> None:
        self._changed.release()

    def when(self, ready: Callable[[], bool], act: Callable[[], R], timeout: float | None = None) -> R:
        """Act as soon as it is time, in the same breath; `TimeoutError` after so many seconds. Blocks."""
        with self._changed:
            if not self._changed.wait_for(ready, timeout):
                raise TimeoutError
            return act()

    async def when_async(self, ready: Callable[[], bool], act: Callable[[], R]) -> R:
        """`when` for an event loop. Whoever is cancelled here has done nothing."""
        while True:
            with self._changed:
                if ready():
                    return act()
                change = asyncio.get_running_loop().create_future()
                self._awaiting.append(change)
            await change

    def notify(self) -> None:
        """Something has changed. For whoever holds the lock."""
        self._changed.notify_all()
        awaiting, self._awaiting = self._awaiting, []
        for change in awaiting:
            with suppress(RuntimeError):  # its loop has been closed, and nobody awaits it any more
                change.get_loop().call_soon_threadsafe(_settle, change)


@dataclass(frozen=True, slots=True)
class End:
    """What comes after the last item: the segment's result, or its error."""

    result: Any = None
    error: BaseException | None = None


class HandOver:
    """Items from a segment to its reader, one at a time, and at the end its result or its error.

    Either side may be a thread that blocks or a task that awaits.
    """

    def __init__(self) -> None:
        self._monitor = Monitor()
        self._items: deque[Any] = deque()
        self._end: End | None = None
        self._closed = False

    def put(self, item: Any) -> None:
        """See `Output.put`."""
        self._monitor.when(self._has_room, lambda: self._add(item))

    async def put_async(self, item: Any) -> None:
        """See `Output.put_async`."""
        await self._monitor.when_async(self._has_room, lambda: self._add(item))

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""
        with self._monitor:
            self._add(item)

    def wait_for_room(self) -> None:
        """See `Outlet.wait_for_room`."""
        self._monitor.when(self._has_room, self._check_reader)

    async def wait_for_room_async(self) -> None:
        """See `Outlet.wait_for_room_async`."""
        await self._monitor.when_async(self._has_room, self._check_reader)

    def finish(self, end: End) -> None:
        """The segment has ended. Nobody is told once the reader has gone."""
        with self._monitor:
            self._end = self._end or end
            self._monitor.notify()

    def close(self) -> None:
        """The reader has gone: let whoever waits go on."""
        with self._monitor:
            self._closed = True
            self._items.clear()
            self._end = self._end or End()
            self._monitor.notify()

    def take(self) -> Any:
        """The next item, or the `End`. Blocks."""
        return self._monitor.when(self._has_news, self._taken)

    async def take_async(self) -> Any:
        """`take` for an event loop. A reader that is cancelled here has taken nothing."""
        return await self._monitor.when_async(self._has_news, self._taken)

    def _has_room(self) -> bool:
        return self._closed or not self._items

    def _check_reader(self) -> None:
        if self._closed:
            raise WorkflowError(STOPPED)

    def _add(self, item: Any) -> None:
        self._check_reader()
        self._items.append(item)
        self._monitor.notify()

    def _has_news(self) -> bool:
        return bool(self._items) or self._end is not None

    def _taken(self) -> Any:
        if not self._items:
            return self._end
        item = self._items.popleft()
        self._monitor.notify()
        return item


def _settle(change: asyncio.Future[None]) -> None:
    if not change.done():
        change.set_result(None)
