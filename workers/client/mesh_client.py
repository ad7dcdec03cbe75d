"""`MeshClient`: start runs, look at them, answer them and steer them, from any process. It never executes one."""

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bus import BusError, Signal, SignalConsumer
from mesh.briefing import BriefingStarted, briefing_id
from persistence import IndexEntry, PersistenceError, UnreachableError
from workers import registry
from workers.client.editions import next_edition, reserved_run_id
from workers.client.handle import RunHandle
from workers.composition import Runtime
from workers.definitions import BRIEFING
from workers.errors import WorkersError
from workers.history import ABANDONED, PastPage, PastRun, Query
from workers.settings import Settings
from workflow import (
    Event,
    ExecutionRequest,
    Workflow,
    WorkflowEngine,
    WorkflowRefusedError,
    WorkflowRunSnapshot,
    WorkflowStatus,
)
from workflow.history import HistoryLine
from workflow.index import RunSummary, make_due

if TYPE_CHECKING:
    from workers.client.aio import AsyncMeshClient
    from workers.schedules.overview import ScheduleView

__all__ = ["MeshClient"]


class MeshClient:
    """The mesh as its users reach it. Without settings, those of the environment and jarvis.toml."""

    def __init__(self, settings: Settings | None = None, *, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or Runtime(settings or Settings.load())

    def start(
        self, name: str, workflow_id: str, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None
    ) -> RunHandle:
        """Record a start, and tell the workers. A run that holds the workflow id already is returned in its place.

        Raises `SettingsError` for a broker that is none, and `persistence.UnreachableError` or `bus.BusUnreachableError`, which
        name the server, when the store does not answer for 20 seconds at most. A broker that does not answer is only logged:
        the sweeper sends the hint.
        """
        hints = self.runtime.hints
        try:
            started = self.runtime.definition(name, workflow_id).ignite(event, run_id=run_id, tag=tag)
        except WorkflowRefusedError as met:
            return self._found(name, workflow_id, met)
        hints.send(name, workflow_id, started)
        return RunHandle(self, name, workflow_id, started, created=True)

    def _found(self, name: str, workflow_id: str, refusal: WorkflowRefusedError) -> RunHandle:
        """The run that a start has met. Raises the refusal itself when that run has gone since: starting again will do."""
        met = self.inspect(workflow_id)
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

    def enqueue_edition(
        self, date: dt.date, edition: int, *, due: dt.datetime | None = None, tag: str | None = None
    ) -> RunHandle:
        """One edition of a date's briefing: new, under way, or finished and kept. One that failed is tried again.

        One that is written long after it was ``due`` (aware, in the operator's zone) says so.
        """
        workflow_id = briefing_id(date, edition)
        event = BriefingStarted(date=date, edition=edition, due=due)
        # A reserved run never replaces one that is there, not even a failed one: that is taken up again instead.
        handle = self.start(BRIEFING, workflow_id, event, run_id=reserved_run_id(workflow_id), tag=tag)
        snapshot = handle.snapshot()
        if not handle.created and snapshot is not None and snapshot.status is WorkflowStatus.FAILED:
            self.retry(handle.workflow_id, run_id=handle.run_id)
            return replace(handle, since_attempt=snapshot.execution_attempt)
        return handle

    def today(self) -> dt.date:
        """The operator's date."""
        return self.runtime.clock.now().astimezone(self.runtime.settings.mesh.operator.tzinfo).date()

    # --- steering -----------------------------------------------------------------------------------------------------------

    def answer(self, workflow_id: str, payload: Any, *, run_id: str, interrupt_id: int) -> bool:
        """Answer the question that was shown: that of this run and this interruption, and no other.

        The answer is recorded, and a worker goes on with it. False when this very answer was given before. Raises
        `WorkflowRefusedError` when the run does not wait for it (any more), or has another answer.
        """
        request = ExecutionRequest.resume(
            {} if payload is None else payload, expected_run_id=run_id, expected_interrupt_id=interrupt_id
        )
        return self._deliver(workflow_id, request)

    def approve(self, workflow_id: str, decisions: Any, *, run_id: str, interrupt_id: int) -> bool:
        """`answer` for a run that waits for approval; ``decisions`` are what its node expects of a person."""
        request = ExecutionRequest.signal("approval", decisions, expected_run_id=run_id, expected_interrupt_id=interrupt_id)
        return self._deliver(workflow_id, request)

    def signal(
        self, workflow_id: str, event: str, payload: Any = None, *, run_id: str | None = None, interrupt_id: int | None = None
    ) -> bool:
        """Deliver an event to the run, which must wait for it now. Otherwise as `answer`.

        An approval names the question that was shown: raises `WorkersError` for one that does not.
        """
        if event == "approval" and (run_id is None or interrupt_id is None):
            raise WorkersError("an approval names the run and the interruption that was shown: use approve()")
        request = ExecutionRequest.signal(event, payload, expected_run_id=run_id, expected_interrupt_id=interrupt_id)
        return self._deliver(workflow_id, request)

    def cancel(self, workflow_id: str, *, run_id: str | None = None) -> bool:
        """End a run wherever it stands, also while a worker executes it. False when there is none and none was named."""
        named, known = run_id or self._current(workflow_id), self._known(workflow_id)
        cancelled = self.runtime.engine.cancel(workflow_id, run_id) if known is None else known.cancel(run_id)
        return self._told(workflow_id, named, cancelled)

    def abandon(self, workflow_id: str, *, run_id: str | None = None) -> bool:
        """Discard a run that nobody executes. False when there is none and none was named."""
        named = run_id or self._current(workflow_id)
        return self._told(workflow_id, named, self._engine(workflow_id).abandon(workflow_id, run_id))

    def retry(self, workflow_id: str, *, run_id: str | None = None) -> bool:
        """Have a failed or parked run taken up again where it failed, now. False when there is no such run, or it has ended."""
        named = run_id or self._current(workflow_id)
        due = None if named is None else make_due(self.runtime.store, workflow_id, named, self.runtime.now())
        if named is None or due is None:
            return False
        self.runtime.hints.send(due.name, workflow_id, named)
        return True

    def _deliver(self, workflow_id: str, request: ExecutionRequest) -> bool:
        known = self._known(workflow_id)
        accepted = self.runtime.engine.deliver(workflow_id, request) if known is None else known.deliver(request)
        entry = self.runtime.store.entry(workflow_id) if accepted else None
        if entry is not None:  # otherwise the sweeper, or a worker, was as fast as that
            self.runtime.hints.send(entry.name, workflow_id, RunSummary.of(entry).run_id)
        return accepted

    def _told(self, workflow_id: str, run_id: str | None, ended: bool) -> bool:
        """Wake whoever waits for a run that was ended."""
        if ended and run_id is not None:
            self.runtime.wake_ups.tell(workflow_id, run_id)
        return ended

    def _known(self, workflow_id: str) -> Workflow[Any] | None:
        """The definition of a run, which knows its codec and how long its end is kept; None where it is not registered."""
        entry = self.runtime.store.entry(workflow_id)
        registered = entry is not None and entry.name in registry.names()
        return self.runtime.definition(entry.name, workflow_id) if entry is not None and registered else None

    def _engine(self, workflow_id: str) -> WorkflowEngine:
        """The engine that reads the run of a workflow id."""
        entry = self.runtime.store.entry(workflow_id)
        return self.runtime.engine if entry is None else self.runtime.engine_of(entry.name, workflow_id)

    def _current(self, workflow_id: str) -> str | None:
        entry = self.runtime.store.entry(workflow_id)
        return None if entry is None else RunSummary.of(entry).run_id

    # --- looking ------------------------------------------------------------------------------------------------------------

    def inspect(self, workflow_id: str) -> WorkflowRunSnapshot | None:
        """Where the run of a workflow id stands, in whatever codec it is written; None when there is none."""
        return self._engine(workflow_id).inspect(workflow_id)

    def past_runs(
        self,
        *,
        workflow_id: str | None = None,
        status: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
        text: str | None = None,
        without: Callable[[PastRun], bool] | None = None,
        limit: int = 100,
        after: IndexEntry | None = None,
    ) -> PastPage:
        """Runs under way and ended, newest start first, as their history tells it; those that left none are not there.

        ``since`` and ``until`` are moments of the start; ``text`` is looked for in ids, name, tag, step and error. ``after`` is
        that of the page before.
        """
        query = Query(name, status, tag, _seconds(since), _seconds(until), text, without)
        self._catch_up()
        if workflow_id is not None:
            return PastPage([run for run in self.runtime.archive.runs_of(workflow_id) if query.wants(run)][:limit])
        return self.runtime.archive.find(query, limit=limit, after=after)

    def history(self, workflow_id: str, *, run_id: str | None = None) -> list[HistoryLine]:
        """What happened to the run, or to the last one of this workflow id, oldest first; also when it has long gone.

        Of a very long one the middle is missing. Empty when there is none, or none that is remembered.
        """
        self._catch_up()
        runs = self.runtime.archive.runs_of(workflow_id)
        wanted = next((run for run in runs if run_id is None or run.run_id == run_id), None)
        return [] if wanted is None else self.runtime.archive.lines(wanted)

    def remembers(self, workflow_id: str, run_id: str) -> bool:
        """Whether the history tells of this run."""
        return self.runtime.archive.holds(workflow_id, run_id)

    def ending(self, workflow_id: str, run_id: str) -> WorkflowStatus | None:
        """How a run that has gone was ended, as the history tells it. None where it does not tell, or it was discarded."""
        self._catch_up()
        try:
            runs = self.runtime.archive.runs_of(workflow_id)
        except UnreachableError:
            raise
        except PersistenceError:
            return None  # a damaged record: whoever looks at the history is told which
        told = next((run for run in runs if run.run_id == run_id), None)
        return WorkflowStatus(told.status) if told is not None and told.is_over and told.status != ABANDONED else None

    def _catch_up(self) -> None:
        """The sweeper passes the history on; so that nobody waits for it, or misses it, whoever looks does it too."""
        with suppress(BusError):
            self.runtime.relay.pass_on()

    def subscribe(self, group: str, topics: Sequence[str], handler: Callable[[Signal], Any], **options: Any) -> SignalConsumer:
        """A member of a group of the bus, for an application: ``run()`` it until ``stop()``. Options as of `SignalConsumer`."""
        return SignalConsumer(self.runtime.signals, group, handler, topics=topics, **options)

    def runs(
        self,
        *,
        status: WorkflowStatus | None = None,
        name: str | None = None,
        tag: str | None = None,
        limit: int = 100,
        after: IndexEntry | None = None,
    ) -> list[IndexEntry]:
        """The runs that the store holds, in the order of their workflow ids. ``after`` is the last one of the page before."""
        wanted = status.value if status else None
        return self.runtime.store.find(name=name, status=wanted, tag=tag, limit=limit, after=after)

    def schedules(self) -> "list[ScheduleView]":
        """Each schedule of the settings: its rule, how its last slot went, and when the next one is."""
        from workers.schedules.overview import overview

        return overview(self.runtime, self.runtime.clock.now())

    @property
    def aio(self) -> "AsyncMeshClient":
        """The same calls for asyncio."""
        from workers.client.aio import AsyncMeshClient

        return AsyncMeshClient(self)

    def close(self) -> None:
        """Let go of connections."""
        self.runtime.close()


def _seconds(moment: dt.datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
