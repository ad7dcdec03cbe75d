"""Reading a run's live items: the segment runs off the reader's thread, behind a bounded hand-over.

Nothing happens before the first pull. Whoever stops reading before the run has settled ends it: the run is failed at once, and
`run()` recovers it.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from workflow.bridge import DirectHost, LoopHost, drive, refuse_on_event_loop
from workflow.errors import WorkflowError
from workflow.output import HandOver
from workflow.running import Running
from workflow.state import WorkflowState

__all__ = ["AsyncEventStream", "EventStream"]

StateT = TypeVar("StateT", bound=WorkflowState)
_STOPPED = "the consumer stopped before the run settled: run() recovers it"


class _Reading(Generic[StateT]):
    """What both kinds of stream share: one hand-over, one call that feeds it, and how they end."""

    def __init__(self, prepare: Callable[[], Running[StateT]]) -> None:
        self._prepare = prepare
        self._hand_over: HandOver[StateT] = HandOver()
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

    def _next(self) -> tuple[bool, Any]:
        """Take one item; at the end remember the state."""
        try:
            more, value = self._hand_over.take()
        except BaseException:
            self._over = True
            raise
        if not more:
            self._over, self._state = True, value
        return more, value

    def _abandon(self) -> None:
        """End the run that is still being read. In a forked child it is the parent's, and none of ours."""
        over, self._over = self._over, True
        if over or os.getpid() != self._process:
            return
        if self._running is not None:
            self._running.give_up(WorkflowError(_STOPPED))
        self._hand_over.close()


class EventStream(_Reading[StateT]):
    """A lazy iterator over live items, and a context manager. The run's state is in `state` once it is exhausted."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        refuse_on_event_loop("events()", "workflow.aio.events()")
        if self._running is None:
            self._begin()
        more, item = self._next()
        if not more:
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
        self._abandon()

    def _begin(self) -> None:
        self._running = self._prepare()
        work = contextvars.copy_context().run
        # The thread knows nothing of this object, so that dropping the stream ends the run.
        arguments = (_work, self._running, self._hand_over)
        threading.Thread(target=work, args=arguments, name="workflow-segment", daemon=True).start()


def _work(running: Running[Any], hand_over: HandOver[Any]) -> None:
    try:
        state = drive(running.execute(DirectHost(), hand_over))
    except BaseException as error:  # noqa: BLE001 - it is raised where the items are read
        hand_over.finish(None, error)
    else:
        hand_over.finish(state)


class AsyncEventStream(_Reading[StateT]):
    """`EventStream` for asyncio: ``async with … as stream: async for item in stream``. The segment is a task of this loop."""

    _task: "asyncio.Task[None] | None" = None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if self._over:
            raise StopAsyncIteration
        if self._running is None:
            self._running = self._prepare()
            self._task = asyncio.create_task(_work_on_loop(self._running, self._hand_over))
        more, item = await asyncio.to_thread(self._next)
        if not more:
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        """See `EventStream.close`."""
        await asyncio.to_thread(self._abandon)
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _work_on_loop(running: Running[Any], hand_over: HandOver[Any]) -> None:
    try:
        state = await running.execute(LoopHost(), hand_over)
    except asyncio.CancelledError:
        hand_over.finish(None, WorkflowError(_STOPPED))
        raise
    except BaseException as error:  # noqa: BLE001 - it is raised where the items are read
        hand_over.finish(None, error)
    else:
        hand_over.finish(state)
