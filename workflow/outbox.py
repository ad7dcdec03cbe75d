"""Pushing to a channel without waiting for it: a thread for each segment that has one, behind a bounded queue.

A channel that is slow slows the run once the queue is full; one that hangs is given up. Either way the run goes on.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from workflow.channels import Feed
from workflow.output import Monitor

__all__ = ["PATIENCE", "ROOM", "Outbox"]

PATIENCE = 5.0
"""Seconds that a run waits for its channel: for room in the queue, and at the end for everything to be sent."""
ROOM = 64
"""Frames that may wait to be sent."""
Call = Callable[[Feed], object]


class Outbox:
    """The frames of one segment on their way. ``failed`` is told, from any thread, of everything that goes wrong."""

    def __init__(self, open_feed: Callable[[], Feed | None], failed: Callable[[BaseException], None]) -> None:
        self._open_feed = open_feed
        self._failed = failed
        self._monitor = Monitor()
        self._calls: deque[Call] = deque()
        self._busy = True
        self._closed = False
        self._given_up = False

    def begin(self) -> None:
        """Open the feed, and send from now on."""
        work = contextvars.copy_context().run
        threading.Thread(target=work, args=(self._work,), name="workflow-channel", daemon=True).start()

    def add(self, frame: Any) -> None:
        """Send a frame after those before it. Does not wait."""
        with self._monitor:
            if not self._given_up:
                self._calls.append(lambda feed: feed.send(frame))
                self._monitor.notify()

    def wait_for_room(self) -> None:
        """Return when there is room for a frame, or when the channel is given up. Blocks."""
        self._wait(self._has_room)

    async def wait_for_room_async(self) -> None:
        """`wait_for_room` for an event loop."""
        try:
            await asyncio.wait_for(self._monitor.when_async(self._has_room, _nothing), PATIENCE)
        except TimeoutError:
            self._give_up()

    def drain(self) -> None:
        """Return when everything has been sent, or when the channel is given up. Blocks."""
        self._wait(self._is_idle)

    def close(self, last: Call) -> None:
        """After everything else make the last call, and wait for that as for the rest; not for a channel that was given up."""
        with self._monitor:
            self._calls.append(last)
            self._closed = True
            self._monitor.notify()
        if not self._given_up:
            self._wait(self._is_idle)

    def _wait(self, ready: Callable[[], bool]) -> None:
        try:
            self._monitor.when(ready, _nothing, PATIENCE)
        except TimeoutError:
            self._give_up()

    def _has_room(self) -> bool:
        return self._given_up or len(self._calls) < ROOM

    def _is_idle(self) -> bool:
        return self._given_up or not (self._busy or self._calls)

    def _give_up(self) -> None:
        """Send no more frames. Should the channel ever come round, it gets the last call all the same."""
        with self._monitor:
            if self._given_up:
                return
            self._given_up = True
            last = self._calls.pop() if self._closed and self._calls else None
            self._calls.clear()
            if last is not None:
                self._calls.append(last)
            self._monitor.notify()
        self._failed(TimeoutError(f"the channel took longer than {PATIENCE:g} s"))

    # --- the thread ---------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        feed = self._attempt(self._open_feed)
        while (call := self._next()) is not None:
            if feed is not None:
                self._attempt(partial(call, feed))

    def _next(self) -> Call | None:
        """The next call, as soon as there is one; None when there will be none."""
        with self._monitor:
            self._busy = False
            self._monitor.notify()
        return self._monitor.when(lambda: bool(self._calls) or self._closed, self._taken)

    def _taken(self) -> Call | None:
        self._busy = bool(self._calls)
        call = self._calls.popleft() if self._calls else None
        self._monitor.notify()
        return call

    def _attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except BaseException as error:  # noqa: BLE001 - whatever it raises, the run goes on
            self._failed(error)
            return None


def _nothing() -> None:
    return None
