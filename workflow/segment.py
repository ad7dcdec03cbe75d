"""A segment: one admitted execution, from its claim until the run suspends, fails or completes.

The core is one coroutine. It opens the resources, keeps the lease, has the paths walked (`workflow.traversal`) and settles the
run in one write, which carries the last step. Decisions live in `workflow.lifecycle`, bytes in `workflow.store`.
"""

import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from workflow.branches import BranchRunner
from workflow.bridge import Host
from workflow.context import StepContext
from workflow.control import Control
from workflow.delivery import Delivery, Route
from workflow.errors import WorkflowError
from workflow.events import Event, StopEvent
from workflow.graph import Graph
from workflow.history import Happened, Told, waiting
from workflow.journal import whole_state
from workflow.leases import Renewal, renewer
from workflow.observing import Listener, Observer
from workflow.path import RecordedPath
from workflow.records import Checkpoint, Outcome, checkpoint_key, outcome_key
from workflow.resources import WorkflowResources
from workflow.serializer import Serializer
from workflow.settled import execution_of
from workflow.state import WorkflowState
from workflow.status import WorkflowStatus
from workflow.store import RunStore
from workflow.traversal import Ended, Paused, Traversal, reached_wait

__all__ = ["Plan", "Segment"]

StateT = TypeVar("StateT", bound=WorkflowState)
_log = logging.getLogger(__name__)


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
    branch_runner: BranchRunner
    retain_completion: bool
    retain_for: float | None
    listeners: tuple[Listener, ...]
    route: Route


class Segment(Generic[StateT]):
    """Executes one claimed run to its next settlement."""

    def __init__(
        self, plan: Plan[StateT], store: RunStore, path: RecordedPath, host: Host, delivery: Delivery, observer: Observer
    ) -> None:
        self._plan = plan
        self._store = store
        self._path = path
        self._host = host
        self._delivery = delivery
        self._observer = observer
        self._renewal: Renewal | None = None
        self.settled: StateT | None = None
        """The state in which the run was settled. Known even if whoever waited for it was cancelled at that moment."""

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
        await self._delivery.begin(self._host)
        state = self._plan.seed()
        resources = await self._host.blocking(self._plan.make_resources)
        graph = self._plan.build(type(self._path.first_event()), state, resources)
        async with self._opened(resources):
            self._observer.started(tuple(spec.step_name for spec in graph.nodes.values()))
            match await self._traversal(graph, resources).main(self._path, state):
                case Ended(event=end, step=step):
                    return await self._host.finishing(lambda: self._complete(step, state, end))
                case Paused(step=step):
                    return await self._host.finishing(lambda: self._suspend(step, state))

    def _traversal(self, graph: Graph, resources: WorkflowResources) -> Traversal[StateT]:
        return Traversal(
            graph=graph,
            resources=resources,
            store=self._store,
            host=self._host,
            output=self._delivery.output,
            observer=self._observer,
            serializer=self._plan.serializer,
            runner=self._plan.branch_runner,
            max_steps=self._plan.max_steps,
            renewal=self._renewal,
        )

    # --- settling -----------------------------------------------------------------------------------------------------------

    def _suspend(self, step: StepContext | None, state: StateT) -> StateT:
        """The run waits. Its main path's own wait is recorded here; those in branches have been."""
        reached = None if step is None else reached_wait(step)

        def change(control: Control) -> Control:
            if reached is None:
                return control.suspended()
            return control.answered(None).with_interrupt(reached).suspended()

        if reached is None and not self._store.control.awaits_input:
            raise WorkflowError("the run stopped without an end and without a wait: this is a fault of the engine")
        records = {
            **(step.unsaved if step else {}),
            checkpoint_key(self._store.control.run_id): Checkpoint(whole_state(state)).to_record(),
        }
        self._store.commit(records, change, verb="suspend", told=waiting)
        return self._as_settled(state, WorkflowStatus.SUSPENDED)

    def _complete(self, step: StepContext | None, state: StateT, end: StopEvent) -> StateT:
        if self._plan.retain_completion:
            self._retain(step, state, end)
        elif not self._store.delete(Told(Happened.COMPLETED, step=_step_id(step))):
            raise self._store.displaced("complete")
        return self._as_settled(state, WorkflowStatus.COMPLETED, end.result)

    def _as_settled(self, state: StateT, status: WorkflowStatus, result: Any = None) -> StateT:
        self.settled = state.stamped(execution_of(self._store, status, result))
        return self.settled

    def _retain(self, step: StepContext | None, state: StateT, end: StopEvent) -> None:
        outcome = Outcome(whole_state(state), end.result).to_record()
        keep = self._plan.retain_for
        self._store.commit(
            {**(step.unsaved if step else {}), outcome_key(self._store.control.run_id): outcome},
            Control.completed,
            verb="complete",
            told=Told(Happened.COMPLETED, step=_step_id(step)),
            wake=None if keep is None else self._store.now() + keep,
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
            await self._host.finishing(partial(_close, manager, self._store, *sys.exc_info()))


def _step_id(step: StepContext | None) -> str:
    return "" if step is None else step.step_id


def _close(manager: AbstractContextManager[Any], store: RunStore, *error: Any) -> None:
    """Close resources. Trouble in that must not undo a run that has settled, nor hide why it failed."""
    try:
        manager.__exit__(*error)
    except Exception:  # noqa: BLE001 - whatever they raise
        _log.exception("the resources of workflow %r could not be closed", store.workflow_id)
