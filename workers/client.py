"""`MeshClient`: start runs, look at them and wait for them, from any process. It never executes one."""

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from mesh.briefing import briefing_id
from persistence import IndexEntry
from workers.composition import Runtime
from workers.definitions import BRIEFING
from workers.editions import next_edition, reserved_run_id
from workers.errors import TimedOutError
from workers.settings import Settings
from workflow import Event, ExecutionRequest, Failure, WorkflowRefusedError, WorkflowRunSnapshot, WorkflowStatus
from workflow.index import RunSummary, make_due

__all__ = ["MeshClient", "RunHandle", "RunResult"]

POLL_EVERY = 0.1
"""Seconds between looks at a run that is waited for."""
_SETTLED = (WorkflowStatus.COMPLETED, WorkflowStatus.FAILED, WorkflowStatus.SUSPENDED, WorkflowStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class RunResult:
    """Where a run was settled. ``result`` is that of its last event, when it completed and is retained.

    ``status`` is None when the run has gone: it has ended and was not kept, so nobody can say how.
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
        found = self.client.runtime.engine.inspect(self.workflow_id)
        return found if found is not None and found.run_id == self.run_id else None

    def step(self) -> str:
        """The name of the step that the run is at, or nothing."""
        entry = self.client.runtime.store.entry(self.workflow_id)
        return RunSummary.of(entry).step if entry is not None else ""

    def wait(self, timeout: float, *, look: Callable[[], None] | None = None) -> RunResult:
        """Wait until the run is settled. ``look`` is called between two looks at the store. Raises `TimedOutError`."""
        deadline = time.monotonic() + timeout
        while True:
            snapshot = self.snapshot()
            if snapshot is None:
                return RunResult(None)
            if self._is_settled(snapshot):
                return self._result(snapshot)
            if time.monotonic() >= deadline:
                raise TimedOutError(
                    f"run {self.run_id} of {self.workflow_id!r} is not finished after {timeout:g} s; it goes on"
                )
            if look is not None:
                look()
            time.sleep(POLL_EVERY)

    def _is_settled(self, snapshot: WorkflowRunSnapshot) -> bool:
        failed_before = snapshot.status is WorkflowStatus.FAILED and snapshot.execution_attempt <= self.since_attempt
        return snapshot.status in _SETTLED and not failed_before

    def _result(self, snapshot: WorkflowRunSnapshot) -> RunResult:
        if snapshot.status is not WorkflowStatus.COMPLETED:
            return RunResult(snapshot.status, failure=snapshot.failure)
        definition = self.client.runtime.definition(self.name, self.workflow_id)
        state = definition.run(ExecutionRequest.resume(expected_run_id=self.run_id))
        return RunResult(WorkflowStatus.COMPLETED, state.execution.result)


class MeshClient:
    """The mesh as its users reach it. Without settings, those of the environment and jarvis.toml."""

    def __init__(self, settings: Settings | None = None, *, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or Runtime(settings or Settings.load())

    def start(
        self, name: str, workflow_id: str, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None
    ) -> RunHandle:
        """Record a start, and tell the workers. A run that holds the workflow id already is returned in its place."""
        try:
            started = self.runtime.definition(name, workflow_id).ignite(event, run_id=run_id, tag=tag)
        except WorkflowRefusedError as met:
            return self._found(name, workflow_id, met)
        self.runtime.hints.send(name, workflow_id, started)
        return RunHandle(self, name, workflow_id, started, created=True)

    def _found(self, name: str, workflow_id: str, refusal: WorkflowRefusedError) -> RunHandle:
        """The run that a start has met. Raises the refusal itself when that run has gone since: starting again will do."""
        met = self.runtime.engine.inspect(workflow_id)
        if met is None:
            raise refusal
        return RunHandle(self, name, workflow_id, met.run_id, created=False)

    def enqueue_briefing(self, date: dt.date | None = None, *, again: bool = False) -> RunHandle:
        """The briefing of a date, by default today's in the operator's zone: new, under way, or finished and kept.

        One that failed is tried again. ``again`` asks for a further edition.
        """
        day = date or self.today()
        if not again:
            return self.enqueue_edition(day, 1)
        while not (handle := self.enqueue_edition(day, next_edition(self.runtime.store, day))).created:
            pass  # somebody else was given this number a moment earlier: the log shows it now
        return handle

    def enqueue_edition(self, date: dt.date, edition: int) -> RunHandle:
        """One edition of a date's briefing: new, under way, or finished and kept. One that failed is tried again."""
        workflow_id = briefing_id(date, edition)
        # A reserved run never replaces one that is there, not even a failed one: that is taken up again instead.
        handle = self.start(BRIEFING, workflow_id, run_id=reserved_run_id(workflow_id))
        snapshot = handle.snapshot()
        if not handle.created and snapshot is not None and snapshot.status is WorkflowStatus.FAILED:
            self.retry(handle.workflow_id, run_id=handle.run_id)
            return replace(handle, since_attempt=snapshot.execution_attempt)
        return handle

    def today(self) -> dt.date:
        """The operator's date."""
        return dt.datetime.now(self.runtime.settings.mesh.operator.tzinfo).date()

    def retry(self, workflow_id: str, *, run_id: str) -> bool:
        """Have a failed run taken up again where it failed. False when this run is not the current one any more."""
        due = make_due(self.runtime.store, workflow_id, run_id, time.time())
        if due is None:
            return False
        self.runtime.hints.send(due.name, workflow_id, run_id)
        return True

    def runs(self, *, status: WorkflowStatus | None = None, name: str | None = None, limit: int = 100) -> list[IndexEntry]:
        """The runs that the store holds, in the order of their workflow ids."""
        return self.runtime.store.find(name=name, status=status.value if status else None, limit=limit)

    def close(self) -> None:
        """Let go of connections."""
        self.runtime.close()
