"""Reading a run's live items: the segment runs off the reader's thread, behind a bounded hand-over.

Nothing happens before the first pull. Whoever stops reading before the run has settled ends it: the run is failed at once, and
`run()` recovers it.
"""

import asyncio
import atexit
import contextvars
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from workflow.bridge import DirectHost, LoopHost, drive, in_thread, refuse_on_event_loop
from workflow.errors import WorkflowError
from workflow.output import STOPPED, End, HandOver
from workflow.running import Running
from workflow.state import WorkflowState

__all__ = ["AsyncEventStream", "EventStream"]

StateT = TypeVar("StateT", bound=WorkflowState)
DROP_PATIENCE = 1.0
"""Seconds that dropping a stream waits until its run has been marked failed."""


class _Reading(Generic[StateT]):
    """What both kinds of stream share: one hand-over, one call that feeds it, and how they end."""

    def __init__(self, prepare: Callable[[], Running[StateT]]) -> None:
        self._prepare = prepare
        self._hand_over: HandOver = HandOver()
        self._running: Running[StateT] | None = None
        self._state: StateT | None = None
        self._over = False
        self._process = os.getpid()

    @property
    def state(self) -> StateT:
        """The final state. Raises `WorkflowError` while there are items to read."""
        if self._state is None:
            raise WorkflowError("this stream has not been read to its end: its state is known then")
        return self._state

    def _prepared(self) -> Running[StateT]:
        self._running = self._prepare()
        self._process = os.getpid()
        _open.add(self)
        return self._running

    @property
    def _is_copy(self) -> bool:
        """Whether a forked child has this stream, whose run is the parent's."""
        return self._running is not None and os.getpid() != self._process

    def _ends(self, taken: Any) -> bool:
        """Whether this is the end and no item. The state is known then; what the segment raised is raised here."""
        if not isinstance(taken, End):
            return False
        self._over, self._state = True, taken.result
        if taken.error is not None:
            raise taken.error
        return True

    def _abandon(self) -> None:
        """End the run that is still being read. In a forked child it is the parent's, and none of ours."""
        over, self._over = self._over, True
        if over or self._is_copy:
            return
        if self._running is not None:
            self._running.give_up(WorkflowError(STOPPED))
        self._hand_over.close()

    def _drop(self, patience: float) -> None:
        """Nobody has this stream any more. It may be collected in any thread, even one that holds the locks needed here."""
        if self._over or self._running is None or self._is_copy or sys.is_finalizing():
            return
        abandoning = threading.Thread(target=self._abandon, name="workflow-dropped-stream", daemon=True)
        abandoning.start()
        abandoning.join(patience)


_open: "weakref.WeakSet[_Reading[Any]]" = weakref.WeakSet()


@atexit.register
def _abandon_open_streams() -> None:
    """A program that ends reads no further. Later than here its threads, and what they hold, are gone."""
    for stream in list(_open):
        stream._abandon()  # pyright: ignore[reportPrivateUsage]


class EventStream(_Reading[StateT]):
    """A lazy iterator over live items, and a context manager. The run's state is in `state` once it is exhausted."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        refuse_on_event_loop("events()", "workflow.aio.events()")
        if self._is_copy:
            raise WorkflowError("this stream was opened before a fork: only the parent can read it")
        if self._running is None:
            self._begin()
        item = self._hand_over.take()
        if self._ends(item):
            raise StopIteration
        return item

    def close(self) -> None:
        """Stop reading. A run that has not settled is marked failed; a node that is still running can write nothing more."""
        self._abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        self._drop(DROP_PATIENCE)

    def _begin(self) -> None:
        work = contextvars.copy_context().run
        # The thread knows nothing of this object, so that dropping the stream ends the run.
        arguments = (_work, self._prepared(), self._hand_over)
        threading.Thread(target=work, args=arguments, name="workflow-segment", daemon=True).start()


def _work(running: Running[Any], hand_over: HandOver) -> None:
    try:
        state = drive(running.execute(DirectHost(), hand_over))
    except BaseException as error:  # noqa: BLE001 - it is raised where the items are read
        hand_over.finish(End(error=error))
    else:
        hand_over.finish(End(state))


class AsyncEventStream(_Reading[StateT]):
    """`EventStream` for asyncio: ``async with … as stream: async for item in stream``. The segment is a task of this loop."""

    _task: "asyncio.Task[None] | None" = None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._over:
            raise StopAsyncIteration
        if self._running is None:
            self._task = asyncio.create_task(_work_on_loop(self._prepared(), self._hand_over))
        item = await self._hand_over.take_async()
        if self._ends(item):
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """See `EventStream.close`."""
        await in_thread(self._abandon)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._drop(0)

    def _abandon(self) -> None:
        super()._abandon()
        if self._task is not None and not self._is_copy:
            with suppress(RuntimeError):  # its loop has been closed, and the task with it
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)


async def _work_on_loop(running: Running[Any], hand_over: HandOver) -> None:
    try:
        state = await running.execute(LoopHost(), hand_over)
    except asyncio.CancelledError:
        hand_over.finish(End(error=WorkflowError(STOPPED)))
        hand_over.close()  # a node in a thread may wait for room
        raise
    except BaseException as error:  # noqa: BLE001 - it is raised where the items are read
        hand_over.finish(End(error=error))
    else:
        hand_over.finish(End(state))
