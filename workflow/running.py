"""One call of a workflow: get hold of the run, then execute a segment or show what is settled."""

from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from workflow.admission import Shown, Start, admit
from workflow.bridge import Host
from workflow.observing import observer_of
from workflow.output import Outlet
from workflow.path import RecordedPath
from workflow.requests import ExecutionRequest
from workflow.segment import Plan, Segment
from workflow.settled import outcome_state, waiting_state
from workflow.state import WorkflowState
from workflow.store import RunStore

__all__ = ["Running"]

StateT = TypeVar("StateT", bound=WorkflowState)


@dataclass(frozen=True, slots=True)
class Running(Generic[StateT]):
    """One call, with everything that it needs, resolved."""

    store: RunStore
    plan: Plan[StateT]
    request: ExecutionRequest
    start: Start

    async def execute(self, host: Host, outlet: Outlet) -> StateT:
        """The state in which the run was settled, or in which it was found settled."""
        admitted = await self._admit(host)
        if admitted is Shown.OUTCOME:
            return outcome_state(self.store, self.plan.seed())
        if admitted is Shown.WAITING:
            return waiting_state(self.store, self.plan.seed())
        return await self._segment(admitted, host, outlet)

    def give_up(self, error: BaseException) -> None:
        """Mark the run failed at once, if it is ours and not settled. Its node, if one runs, can write nothing any more."""
        self.store.close(error)

    async def _segment(self, path: RecordedPath, host: Host, outlet: Outlet) -> StateT:
        """Execute, and tell listeners, reader and channel how it ended once that is recorded."""
        observer = observer_of(self.plan.listeners, self.store)
        delivery = self.plan.route.deliver(outlet, self.store, observer)
        segment = Segment(self.plan, self.store, path, host, delivery, observer)
        try:
            state = await segment.run()
        except BaseException as error:
            failed = partial(observer.failed, error)
            if segment.settled is None:
                await delivery.failed(host, error, failed)
            else:
                # Cancelled at the very end: the caller gets the error, but what is recorded is the outcome.
                await delivery.settled(host, segment.settled, failed)
            raise
        await delivery.settled(host, state, partial(observer.settled, state.interrupt_request))
        return state

    async def _admit(self, host: Host) -> RecordedPath | Shown:
        try:
            return await host.finishing(lambda: admit(self.store, self.request, self.start))
        except BaseException as error:
            # Whoever is cancelled here may have claimed the run already.
            await host.finishing(lambda failure=error: self.store.fail(failure))
            raise
