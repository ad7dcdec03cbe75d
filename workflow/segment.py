"""A segment: one admitted execution, from its claim until the run suspends, fails or completes.

The core is one coroutine. It replays the recorded steps, calls the node of the next one, and commits each step with one fenced
write; the write that settles the run carries the last step. Decisions live in `workflow.lifecycle`, bytes in `workflow.store`.
"""

import itertools
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from workflow.bridge import Host
from workflow.calling import Call
from workflow.context import StepContext
from workflow.control import ActiveInterrupt, Control
from workflow.errors import WorkflowError
from workflow.events import Event, StopEvent
from workflow.graph import Graph, NodeSpec
from workflow.journal import StateJournal, apply_change, whole_state
from workflow.leases import Renewal, renewer
from workflow.output import Output
from workflow.path import RecordedPath
from workflow.records import Outcome, answer_name, checkpoint_key, memo_key, outcome_key
from workflow.resources import WorkflowResources
from workflow.serializer import Serializer
from workflow.settled import execution_of
from workflow.state import WorkflowState
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["Plan", "Segment"]

StateT = TypeVar("StateT", bound=WorkflowState)


@dataclass(frozen=True, slots=True)
class Plan(Generic[StateT]):
    """What a segment needs of a workflow, resolved when the segment begins and kept for its length."""

    make_resources: Callable[[], WorkflowResources]
    build: Callable[[type[Event], WorkflowState, WorkflowResources], Graph]
    seed: Callable[[], StateT]
    serializer: Serializer
    lease_renewal: bool
    node_timeout: float
    max_steps: int | None
    retain_completion: bool
    retain_for: float | None


class Segment(Generic[StateT]):
    """Executes one claimed run to its next settlement."""

    def __init__(self, plan: Plan[StateT], store: RunStore, path: RecordedPath, host: Host, output: Output) -> None:
        self._plan = plan
        self._store = store
        self._path = path
        self._host = host
        self._output = output
        self._journal = StateJournal(plan.serializer)
        self._renewal: Renewal | None = None

    async def run(self) -> StateT:
        """The state in which the run was settled. A failure marks the run failed and is raised as it is."""
        try:
            self._keep_lease()
            return await self._execute()
        except BaseException as error:
            # Whatever ends a segment early, a cancelled task and Ctrl-C too, must not leave the run looking alive.
            await self._host.finishing(partial(self._end, error))
            raise
        finally:
            if self._renewal is not None:
                renewer.release(self._renewal)
            await self._host.finishing(self._store.close)

    async def _execute(self) -> StateT:
        state = self._plan.seed()
        resources = await self._host.blocking(self._plan.make_resources)
        graph = self._plan.build(type(self._path.first_event()), state, resources)
        async with self._opened(resources):
            return await self._traverse(graph, state, resources)

    # --- the path -----------------------------------------------------------------------------------------------------------

    async def _traverse(self, graph: Graph, state: StateT, resources: WorkflowResources) -> StateT:
        first, event = self._replay(state)
        for index in itertools.count(first):
            self._check_budget(index)
            spec = graph.node_for(event)
            step = self._begin(spec, index, state)
            call = Call(spec, step, state, resources, graph.around(spec), self._host, self._output)
            returned = await call.run(event)
            record = partial(self._record, graph, index, spec.step_name, step, state, returned)
            settled = await self._host.finishing(record)
            if settled is not None:
                return settled
            event = cast(Event, returned)
        raise AssertionError("unreachable: the count has no end")

    def _replay(self, state: StateT) -> tuple[int, Event]:
        """Bring the state to where the settled steps left it. Returns the step that comes next, and its event."""
        path, index, event = self._path, self._path.first, self._path.first_event()
        if path.folded_state is not None:
            apply_change(state, path.folded_state)
        while (recorded := path.step(index)) is not None:
            apply_change(state, recorded.state)
            index, event = index + 1, recorded.event
        if index > 0:
            self._journal.recorded(state)
        return index, event

    def _check_budget(self, index: int) -> None:
        budget = self._plan.max_steps
        if budget is not None and index >= budget:
            raise WorkflowError(f"the run exceeded its budget of {budget} steps: raise `max_steps`, then run() continues it")

    def _begin(self, spec: NodeSpec, index: int, state: StateT) -> StepContext:
        step_id = f"{spec.step_name}-{index}"
        active = self._store.control.interrupt
        answered = active if active is not None and self._is_undelivered(active, step_id) else None
        state.stamped(execution_of(self._store, WorkflowStatus.RUNNING))
        if self._renewal is not None:
            renewer.node_begins(self._renewal)
        return StepContext(self._store, step_id, answered, self._output)

    def _is_undelivered(self, active: ActiveInterrupt, step_id: str) -> bool:
        """Whether the answer is for this step and has yet to reach it.

        An earlier attempt may have recorded it already, with the memo whose closure asked: its wait is not reached again then.
        """
        answer = memo_key(self._store.control.run_id, step_id, answer_name(active.wait))
        return active.step_id == step_id and not self._store.has(answer)

    # --- recording ----------------------------------------------------------------------------------------------------------

    def _record(
        self,
        graph: Graph,
        index: int,
        name: str,
        step: StepContext,
        state: StateT,
        returned: Event | None,
    ) -> StateT | None:
        """Write what the node did. The state when that settles the run, None when the path goes on."""
        if returned is None:
            return self._suspend(step, state)
        if isinstance(returned, StopEvent):
            return self._complete(step, state, returned)
        following = graph.nodes.get(type(returned))
        self._store.step = following.step_name if following else ""
        records, obsolete = self._path.recording(index, name, returned, state, self._journal)
        self._store.commit({**step.unsaved, **records}, partial(_without_answer_of, step.step_id), delete=obsolete)
        return None

    def _suspend(self, step: StepContext, state: StateT) -> StateT:
        active = step.suspended_on
        if active is None:
            raise WorkflowError("a node raised the engine's own suspension signal: use interrupt() and its kin")
        records = {**step.unsaved, checkpoint_key(self._store.control.run_id): whole_state(state).to_record()}
        self._store.commit(records, lambda control: control.with_interrupt(active).suspended(), verb="suspend")
        return state.stamped(execution_of(self._store, WorkflowStatus.SUSPENDED))

    def _complete(self, step: StepContext, state: StateT, end: StopEvent) -> StateT:
        if self._plan.retain_completion:
            self._retain(step, state, end)
        elif not self._store.delete():
            raise self._store.displaced("complete")
        return state.stamped(execution_of(self._store, WorkflowStatus.COMPLETED, end.result))

    def _retain(self, step: StepContext, state: StateT, end: StopEvent) -> None:
        outcome = Outcome(whole_state(state), end.result).to_record()
        keep = self._plan.retain_for
        self._store.commit(
            {**step.unsaved, outcome_key(self._store.control.run_id): outcome},
            Control.completed,
            verb="complete",
            retain_until=None if keep is None else self._store.now() + keep,
        )

    def _end(self, error: BaseException) -> None:
        """The segment ends early: mark the run failed, or clear away a run that was cancelled under it."""
        if not self._store.fail(error):
            self._store.forget_cancelled()

    # --- around the path ----------------------------------------------------------------------------------------------------

    def _keep_lease(self) -> None:
        if self._store.lease_timeout is not None and self._plan.lease_renewal:
            self._renewal = renewer.keep(self._store, self._store.lease_timeout, self._plan.node_timeout)

    @asynccontextmanager
    async def _opened(self, resources: WorkflowResources) -> AsyncGenerator[None]:
        """Close resources that are a context manager when the segment ends."""
        if not isinstance(resources, AbstractContextManager):
            yield
            return
        manager = cast(AbstractContextManager[Any], resources)
        await self._host.blocking(manager.__enter__)
        try:
            yield
        finally:
            # Not a `with`: resources that swallow the error would turn a failure into a success.
            await self._host.finishing(partial(manager.__exit__, *sys.exc_info()))


def _without_answer_of(step_id: str, control: Control) -> Control:
    """The step that an answer belonged to has been committed: its interruption is over."""
    ours = control.interrupt is not None and control.interrupt.step_id == step_id
    return control.without_interrupt() if ours else control
