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

__all__ = ["STOPPED", "End", "HandOver", "NoOutput", "Output"]

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


class NoOutput:
    """Nobody reads."""

    def put(self, item: Any) -> None:
        """See `Output.put`."""

    async def put_async(self, item: Any) -> None:
        """See `Output.put_async`."""

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""


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
        self._changed = threading.Condition()
        self._awaiting: list[asyncio.Future[None]] = []
        self._items: deque[Any] = deque()
        self._end: End | None = None
        self._closed = False

    def put(self, item: Any) -> None:
        """See `Output.put`."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._add(item)

    async def put_async(self, item: Any) -> None:
        """See `Output.put_async`."""
        await self._when(self._has_room, lambda: self._add(item))

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""
        with self._changed:
            self._add(item)

    def finish(self, end: End) -> None:
        """The segment has ended. Nobody is told once the reader has gone."""
        with self._changed:
            self._end = self._end or end
            self._notify()

    def close(self) -> None:
        """The reader has gone: let whoever waits go on."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._end = self._end or End()
            self._notify()

    def take(self) -> Any:
        """The next item, or the `End`. Blocks."""
        with self._changed:
            self._changed.wait_for(self._has_news)
            return self._taken()

    async def take_async(self) -> Any:
        """`take` for an event loop. A reader that is cancelled here has taken nothing."""
        return await self._when(self._has_news, self._taken)

    def _has_room(self) -> bool:
        return self._closed or not self._items

    def _add(self, item: Any) -> None:
        if self._closed:
            raise WorkflowError(STOPPED)
        self._items.append(item)
        self._notify()

    def _has_news(self) -> bool:
        return bool(self._items) or self._end is not None

    def _taken(self) -> Any:
        if not self._items:
            return self._end
        self._notify()
        return self._items.popleft()

    async def _when(self, ready: Callable[[], bool], act: Callable[[], R]) -> R:
        """Act as soon as it is time, in the same breath."""
        while True:
            with self._changed:
                if ready():
                    return act()
                change = asyncio.get_running_loop().create_future()
                self._awaiting.append(change)
            await change

    def _notify(self) -> None:
        self._changed.notify_all()
        awaiting, self._awaiting = self._awaiting, []
        for change in awaiting:
            with suppress(RuntimeError):  # its loop has been closed, and nobody awaits it any more
                change.get_loop().call_soon_threadsafe(_settle, change)


def _settle(change: asyncio.Future[None]) -> None:
    if not change.done():
        change.set_result(None)
