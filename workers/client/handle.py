"""`RunHandle`: one run as whoever started it sees it, until it has come to an end or to a stop.

Whoever waits looks at the store, and sleeps until a wake-up (`workers.waking`) says that the run is settled. The store alone
decides; without a wake-up it is looked at every few seconds.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workers.errors import TimedOutError
from workflow import ExecutionRequest, Failure, WorkflowRunSnapshot, WorkflowStatus
from workflow.index import RunSummary

if TYPE_CHECKING:
    from workers.client.mesh_client import MeshClient

__all__ = ["RunHandle", "RunResult"]

LOOK_EVERY = 0.25
"""Seconds between looks where somebody wants to look along."""
_SETTLED = (WorkflowStatus.COMPLETED, WorkflowStatus.FAILED, WorkflowStatus.SUSPENDED, WorkflowStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class RunResult:
    """Where a run was settled. ``result`` is that of its last event, when it completed and is retained.

    ``status`` is None when the run has gone, and its history does not say how: it is forgotten, or the run was discarded.
    """

    status: WorkflowStatus | None
    result: Any = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class RunHandle:
    """A run that was started, or found in place of a new one (then not ``created``)."""

    client: "MeshClient"
    name: str
    workflow_id: str
    run_id: str
    created: bool
    since_attempt: int = 0
    """A failure up to this attempt is an earlier one, from which the run is being taken up again."""

    def snapshot(self) -> WorkflowRunSnapshot | None:
        """Where the run stands; None when it has ended and is not retained, or was replaced."""
        found = self.client.runtime.engine_of(self.name, self.workflow_id).inspect(self.workflow_id)
        return found if found is not None and found.run_id == self.run_id else None

    def step(self) -> str:
        """The name of the step that the run is at, or nothing."""
        entry = self.client.runtime.store.entry(self.workflow_id)
        return RunSummary.of(entry).step if entry is not None else ""

    def settled(self) -> RunResult | None:
        """Where the run has ended, or waits for something else than its next try or a worker. None while it goes on."""
        snapshot = self.snapshot()
        if snapshot is None:
            return RunResult(self.client.ending(self.workflow_id, self.run_id))
        return self._result(snapshot) if self._is_settled(snapshot) else None

    def wait(self, timeout: float, *, look: Callable[[], None] | None = None) -> RunResult:
        """Wait until the run is `settled`, for ``timeout`` seconds at most.

        ``look`` is called between two looks at the store, which are then more frequent. Raises `TimedOutError`.
        """
        deadline, woken, wake_ups = time.monotonic() + timeout, threading.Event(), self.client.runtime.wake_ups
        if (result := self.settled()) is not None:
            return result
        every = wake_ups.look_every if look is None else min(wake_ups.look_every, LOOK_EVERY)
        with wake_ups.listening(self.workflow_id, self.run_id, woken.set):
            while (result := self.settled()) is None:
                left = self._left(deadline, timeout)
                if look is not None:
                    look()
                woken.wait(min(left, every))
                woken.clear()
        return result

    async def wait_on_loop(self, timeout: float) -> RunResult:
        """`wait` on an event loop: many waiters share the threads in which the store is looked at."""
        deadline, woken, wake_ups = time.monotonic() + timeout, asyncio.Event(), self.client.runtime.wake_ups
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(woken.set)

        with wake_ups.listening(self.workflow_id, self.run_id, wake):
            while (result := await asyncio.to_thread(self.settled)) is None:
                left = self._left(deadline, timeout)
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, wake_ups.look_every)):
                        await woken.wait()
                woken.clear()
        return result

    def _left(self, deadline: float, timeout: float) -> float:
        """Seconds until the deadline. Raises `TimedOutError` when it is over."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimedOutError(f"run {self.run_id} of {self.workflow_id!r} is not finished after {timeout:g} s; it goes on")
        return left

    def _is_settled(self, snapshot: WorkflowRunSnapshot) -> bool:
        if snapshot.status is WorkflowStatus.FAILED:
            goes_on = snapshot.failure is not None and snapshot.failure.retry_at is not None
            return snapshot.execution_attempt > self.since_attempt and not goes_on
        return snapshot.status in _SETTLED and not snapshot.input_accepted

    def _result(self, snapshot: WorkflowRunSnapshot) -> RunResult:
        if snapshot.status is not WorkflowStatus.COMPLETED:
            return RunResult(snapshot.status, failure=snapshot.failure)
        definition = self.client.runtime.definition(self.name, self.workflow_id)
        state = definition.run(ExecutionRequest.resume(expected_run_id=self.run_id))
        return RunResult(WorkflowStatus.COMPLETED, state.execution.result)
