"""Walking the paths of one segment: the main one, and those of its branches.

A path is replayed as far as its records go, then executed node by node, each committed with one write. It stops where the run
ends, or where the segment has to pause: a node waits, a node has failed, or an accepted answer must first reach the node that
asked for it.
"""

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from persistence import PersistenceError
from workflow.branches import BranchRunner, OpenBranch
from workflow.bridge import Host
from workflow.calling import Call
from workflow.context import StepContext
from workflow.control import ActiveInterrupt, Control, interrupt_of, interrupt_record
from workflow.errors import WorkflowError
from workflow.events import Event, StopEvent
from workflow.graph import Graph, NodeSpec
from workflow.history import Happened, Told
from workflow.journal import StateJournal, apply_change
from workflow.leases import Renewal, renewer
from workflow.observing import Observer
from workflow.output import Output
from workflow.parallel import ParallelEvent
from workflow.path import RecordedPath
from workflow.records import answer_name, deferred_key, memo_key
from workflow.resources import WorkflowResources
from workflow.serializer import Serializer
from workflow.settled import execution_of
from workflow.state import WorkflowState
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["Ended", "Paused", "Traversal", "reached_wait"]

StateT = TypeVar("StateT", bound=WorkflowState)


@dataclass(frozen=True, slots=True)
class Ended:
    """A path has come to its end. Of the main path the last step is not recorded yet: what settles the run carries it."""

    event: StopEvent
    step: StepContext | None = None


@dataclass(frozen=True, slots=True)
class Paused:
    """A path goes no further in this segment. ``step`` is the one of the main path that waits, not recorded yet."""

    step: StepContext | None = None


@dataclass(frozen=True, slots=True)
class _Walk(Generic[StateT]):
    """One path under way: where it is recorded, what it knows, and the branch that it is, if it is one."""

    path: RecordedPath
    journal: StateJournal
    state: StateT
    branch: str | None = None


@dataclass(slots=True)
class Traversal(Generic[StateT]):
    """What all paths of a segment share."""

    graph: Graph
    resources: WorkflowResources
    store: RunStore
    host: Host
    output: Output
    observer: Observer
    serializer: Serializer
    runner: BranchRunner
    max_steps: int | None
    renewal: Renewal | None
    _stopping: bool = False
    _begun: int = 0
    """Nodes that this segment has called."""

    async def main(self, path: RecordedPath, state: StateT) -> Ended | Paused:
        """Walk the main path."""
        return await self._walk(_Walk(path, StateJournal(self.serializer), state))

    # --- one path -----------------------------------------------------------------------------------------------------------

    async def _walk(self, walk: _Walk[StateT]) -> Ended | Paused:
        first, event = _replay(walk)
        walk.state.stamped(execution_of(self.store, WorkflowStatus.RUNNING))
        for index in itertools.count(first):
            if isinstance(event, StopEvent):
                return Ended(event)
            if isinstance(event, ParallelEvent):
                event = event.fresh()
                if not await self._fork(walk, index - 1, event):
                    return Paused()
                if self.store.bus_position is not None:
                    walk.path.branches_met(index - 1, self.store.bus_position.latest)
            spec = self.graph.node_for(event)
            step_id = walk.path.step_id(index, spec.step_name)
            if self._is_held_back(step_id):
                return Paused()
            self._check_budget(walk, index)
            step = self._begin(walk, spec, step_id, walk.path.position(index) if self.store.bus_position else None)
            returned = await self._execute(walk, spec, step, event)
            if walk.branch is None and (returned is None or isinstance(returned, StopEvent)):
                return Paused(step) if returned is None else Ended(returned, step)
            if returned is None:
                await self.host.finishing(partial(self._queue_wait, spec.step_name, step))
                return Paused()
            await self.host.finishing(partial(self._commit, walk, index, spec.step_name, step, returned))
            event = returned
        raise AssertionError("unreachable: the count has no end")

    async def _execute(self, walk: _Walk[StateT], spec: NodeSpec, step: StepContext, event: Event) -> Event | None:
        """Call the node. Whatever it raises, no other branch begins a node after it."""
        call = Call(spec, step, walk.state, self.resources, self.graph.around(spec), self.host)
        try:
            with step.observer.node() as observed:
                returned = await call.run(event)
                if returned is None:
                    observed.suspended()
            return returned
        except BaseException:
            self.store.failing = self.store.failing or step.step_id
            self._stop()
            raise
        finally:
            if self.renewal is not None:
                renewer.node_ends(self.renewal, step.step_id)

    def _begin(self, walk: _Walk[StateT], spec: NodeSpec, step_id: str, position: str | None) -> StepContext:
        active = self.store.control.interrupt
        answered = active if active is not None and self._is_undelivered(active, step_id) else None
        self._begun += 1
        self.store.step = spec.step_name
        if self.renewal is not None:
            renewer.node_begins(self.renewal, step_id)
        observer = self.observer.step(spec.step_name, step_id, walk.branch)
        output = observer.output(self.output)
        return StepContext(
            self.store,
            step_id,
            answered,
            output,
            branch=walk.branch,
            observer=observer,
            began=self.store.now(),
            position=position,
        )

    def _is_undelivered(self, active: ActiveInterrupt, step_id: str) -> bool:
        """Whether the answer is for this step and has yet to reach it.

        An earlier attempt may have recorded it already, with the memo whose closure asked: its wait is not reached again then.
        """
        answer = memo_key(self.store.control.run_id, step_id, answer_name(active.wait))
        return active.step_id == step_id and not self.store.has(answer)

    def _is_held_back(self, step_id: str) -> bool:
        """Whether the node of this step must not begin now."""
        if self._is_pausing() or step_id in self.store.control.pending_steps:
            return True
        active = self.store.control.interrupt
        return active is not None and active.step_id != step_id

    def _stop(self) -> None:
        self._stopping = True

    def _is_pausing(self) -> bool:
        """Whether no node may begin at all: one has failed, or one waits for an answer."""
        return self._stopping or self.store.control.awaits_input

    def _check_budget(self, walk: _Walk[StateT], index: int) -> None:
        if self.max_steps is None or index < self.max_steps:
            return
        where = "the run" if walk.branch is None else f"branch {walk.branch!r} of the run"
        raise WorkflowError(
            f"{where} exceeded its budget of {self.max_steps} steps: raise `max_steps`, then run() continues it"
        )

    # --- branches -----------------------------------------------------------------------------------------------------------

    async def _fork(self, walk: _Walk[StateT], fork: int, event: ParallelEvent) -> bool:
        """Advance the branches of a fork until all have ended, or none gets any further. True when all have ended."""
        while True:
            names = [name for name in event.branches if not event.has_result(name)]
            if not names:
                return True
            before = self._begun
            await self.runner.run([self._open_branch(walk, fork, event, name) for name in names], self.host)
            # A branch that was held back by an answer on its way to another one goes on now.
            if self._is_pausing() or self._begun == before:
                return all(event.has_result(name) for name in event.branches)

    def _open_branch(self, walk: _Walk[StateT], fork: int, event: ParallelEvent, name: str) -> OpenBranch:
        return OpenBranch(name, partial(self._advance, walk, fork, event, name), self._is_pausing, self._stop)

    async def _advance(self, walk: _Walk[StateT], fork: int, event: ParallelEvent, name: str) -> None:
        begins = event.branches[name].model_copy(deep=True)
        path, state = walk.path.branch(fork, name, begins), walk.state.model_copy(deep=True)
        with self.observer.branch(name) as observed:
            try:
                end = await self._walk(_Walk(path, walk.journal.branched(), state, name))
            except BaseException:
                self._stop()
                raise
            if isinstance(end, Ended):
                walk.path.branch_ended(fork, path)
                event.set_result(name, end.event.result)
            else:
                observed.suspended()

    # --- recording ----------------------------------------------------------------------------------------------------------

    def _commit(self, walk: _Walk[StateT], index: int, name: str, step: StepContext, event: Event) -> None:
        following = self.graph.nodes.get(type(event))
        # Taken before the step is written: what is published from here on is news for the next one.
        position = self.store.bus_position() if self.store.bus_position else None
        records, obsolete = walk.path.recording(index, name, event, walk.state, walk.journal, position)
        told = Told(Happened.STEP, step=step.step_id, seconds=round(self.store.now() - step.began, 3))
        self.store.commit(
            {**step.unsaved, **records},
            partial(self._settled, step.step_id),
            delete=obsolete,
            told=told,
            at=following.step_name if following else "",
        )

    def _queue_wait(self, name: str, step: StepContext) -> None:
        """A node in a branch has reached a wait: the run is suspended once the others have come to a stop."""
        reached = reached_wait(step)

        def change(control: Control) -> Control:
            return self._released(step.step_id, control).with_interrupt(reached)

        def records(control: Control) -> dict[str, Any]:
            if control.interrupt is not None and control.interrupt.step_id == step.step_id:
                return step.unsaved
            numbered = replace(reached, request=reached.request.with_id(control.next_interrupt_id - 1))
            return {**step.unsaved, deferred_key(control.run_id, step.step_id): interrupt_record(numbered)}

        self.store.commit(records, change, verb="suspend", at=name)

    def _settled(self, step_id: str, control: Control) -> Control:
        return self._released(step_id, control).moved_on()

    def _released(self, step_id: str, control: Control) -> Control:
        """Control after this step: if the current interruption was its own, the oldest deferred one takes its place."""
        if control.interrupt is None or control.interrupt.step_id != step_id:
            return control
        if not control.pending_steps:
            return control.answered(None)
        key = deferred_key(control.run_id, control.pending_steps[0])
        following = self.store.read(key, interrupt_of)
        if following is None:
            raise PersistenceError(
                f"record {key!r} of workflow {self.store.workflow_id!r} is missing: restore it from a backup"
            )
        return control.answered(following)


def reached_wait(step: StepContext) -> ActiveInterrupt:
    """What a node that suspended waits for."""
    if step.suspended_on is None:
        raise WorkflowError("a node raised the engine's own suspension signal: use interrupt() and its kin")
    return step.suspended_on


def _replay(walk: _Walk[Any]) -> tuple[int, Event]:
    """Bring the state to where the settled steps left it. Returns the step that comes next, and its event."""
    path, index, event = walk.path, walk.path.first, walk.path.first_event()
    if path.folded_state is not None:
        apply_change(walk.state, path.folded_state)
    while (recorded := path.step(index)) is not None:
        apply_change(walk.state, recorded.state)
        index, event = index + 1, recorded.event
    if index > 0:
        walk.journal.recorded(walk.state)
    return index, event
