"""Look at and settle runs by their workflow id alone, without the class that defined them."""

import asyncio
import datetime as dt
from dataclasses import dataclass
from typing import Any

from persistence import Persistence
from workflow import lifecycle
from workflow.admission import record_answer
from workflow.clock import Clock, SystemClock
from workflow.expiring import expire_lease
from workflow.history import Happened, Told, hides_nothing
from workflow.ids import check_workflow_id, new_writer
from workflow.interrupts import InterruptRequest
from workflow.json_codec import JsonSerializer
from workflow.records import Failure, failure_key
from workflow.requests import ExecutionRequest
from workflow.serializer import Serializer
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["WorkflowEngine", "WorkflowRunSnapshot"]


@dataclass(frozen=True, slots=True)
class WorkflowRunSnapshot:
    """Where a run stood when it was looked at. ``start_event`` is a copy; opaque when its class is not defined here."""

    workflow_id: str
    run_id: str
    status: WorkflowStatus
    execution_attempt: int
    interrupt: InterruptRequest | None
    input_accepted: bool
    start_event: Any
    lease_expires_at: dt.datetime | None
    deferred_interrupts: int
    tag: str | None
    version: str | None
    """The version of the definition that the run was started with."""
    failure: Failure | None
    """Why the last segment failed, while the run is failed."""


class WorkflowEngine:
    """Manages runs in one store. Use the codec that their workflows use; the clock decides which leases are live."""

    def __init__(self, persistence: Persistence, serializer: Serializer | None = None, *, clock: Clock | None = None) -> None:
        self._persistence = persistence
        self._serializer = serializer or JsonSerializer()
        self._clock = clock or SystemClock()

    @property
    def hides_nothing(self) -> bool:
        """Whether what runs hold, an error's message for instance, may be shown to everybody who reads the store."""
        return hides_nothing(self._serializer)

    def inspect(self, workflow_id: str) -> WorkflowRunSnapshot | None:
        """The current run, or None. Writes nothing."""
        store = self._store(workflow_id)
        control = store.load()
        if control is None:
            return None
        active = control.interrupt
        failed = control.status is WorkflowStatus.FAILED
        return WorkflowRunSnapshot(
            workflow_id=workflow_id,
            run_id=control.run_id,
            status=control.status,
            execution_attempt=control.attempt,
            interrupt=active.request if active else None,
            input_accepted=active is not None and active.input is not None,
            start_event=store.ignition.start_event,
            lease_expires_at=control.lease_end,
            deferred_interrupts=len(control.pending_steps),
            tag=store.ignition.tag,
            version=store.ignition.version,
            failure=store.read(failure_key(control.run_id), Failure.from_record) if failed else None,
        )

    @property
    def aio(self) -> "AsyncWorkflowEngine":
        """The same calls for asyncio, with the store in threads."""
        return AsyncWorkflowEngine(self)

    def abandon(self, workflow_id: str, run_id: str | None = None, execution_attempt: int | None = None) -> bool:
        """Discard a run that nobody executes. False when there is none (a refusal when one was named)."""
        store = self._store(workflow_id)
        control = store.load()
        if not lifecycle.abandon(workflow_id, control, run_id, execution_attempt, int(store.now())):
            return False
        self._delete(store, Told(Happened.ABANDONED))
        return True

    def acknowledge(self, workflow_id: str, run_id: str) -> None:
        """Forget a retained run: its outcome has been received."""
        store = self._store(workflow_id)
        lifecycle.acknowledge(workflow_id, store.load(), run_id, int(store.now()))
        self._delete(store)

    def cancel(
        self, workflow_id: str, run_id: str | None = None, *, retain: bool = False, retain_for: float | None = None
    ) -> bool:
        """End a run wherever it stands, also while it is executed: its owner can write nothing more. False when there is none.

        With ``retain`` the cancelled run stays until acknowledged, with ``retain_for`` for so many seconds at most. Otherwise
        it is deleted: at once, or when a worker may still be busy with it, by that worker or when its lease has ended.
        Cancelling again changes nothing.
        """
        store = self._store(workflow_id)
        retain = retain or retain_for is not None
        while True:
            control = store.load()
            now = int(store.now())
            cancelled = lifecycle.cancel(workflow_id, control, run_id, now, retain=retain, writer=new_writer())
            if cancelled is None:
                return control is not None
            busy = control is not None and control.status is WorkflowStatus.RUNNING
            until = None if retain_for is None else store.now() + retain_for
            # Whoever loses the fence here looks again: the run has moved on, and is still to be ended.
            told = Told(Happened.CANCELLED)
            if store.replace(cancelled, told, wake=until) if retain or busy else store.delete(told):
                return True

    def deliver(self, workflow_id: str, request: ExecutionRequest) -> bool:
        """Record the answer that a request (a resume with a payload, or a signal) brings, without executing the run.

        The run is due at once; whoever continues it, by a resume without payload, executes it with the answer. False when
        this very answer has been accepted before. Refuses what the execution of the request would refuse.
        """
        return record_answer(self._store(workflow_id), request)

    def expire(self, workflow_id: str, run_id: str, attempt: int, *, given_back: bool = False) -> bool:
        """End the lease of a segment now: see `workflow.expiring.expire_lease`."""
        return expire_lease(
            self._persistence,
            workflow_id,
            run_id,
            attempt,
            given_back=given_back,
            serializer=self._serializer,
            clock=self._clock,
        )

    def _store(self, workflow_id: str) -> RunStore:
        return RunStore(self._persistence, self._serializer, check_workflow_id(workflow_id), self._clock)

    def _delete(self, store: RunStore, told: Told | None = None) -> None:
        if not store.delete(told):
            raise lifecycle.conflict(store.workflow_id)


class AsyncWorkflowEngine:
    """`WorkflowEngine.aio`."""

    def __init__(self, engine: WorkflowEngine) -> None:
        self._engine = engine

    async def inspect(self, workflow_id: str) -> WorkflowRunSnapshot | None:
        """See `WorkflowEngine.inspect`."""
        return await asyncio.to_thread(self._engine.inspect, workflow_id)

    async def abandon(self, workflow_id: str, run_id: str | None = None, execution_attempt: int | None = None) -> bool:
        """See `WorkflowEngine.abandon`."""
        return await asyncio.to_thread(self._engine.abandon, workflow_id, run_id, execution_attempt)

    async def acknowledge(self, workflow_id: str, run_id: str) -> None:
        """See `WorkflowEngine.acknowledge`."""
        await asyncio.to_thread(self._engine.acknowledge, workflow_id, run_id)

    async def deliver(self, workflow_id: str, request: ExecutionRequest) -> bool:
        """See `WorkflowEngine.deliver`."""
        return await asyncio.to_thread(self._engine.deliver, workflow_id, request)

    async def cancel(
        self, workflow_id: str, run_id: str | None = None, *, retain: bool = False, retain_for: float | None = None
    ) -> bool:
        """See `WorkflowEngine.cancel`."""
        return await asyncio.to_thread(self._engine.cancel, workflow_id, run_id, retain=retain, retain_for=retain_for)
