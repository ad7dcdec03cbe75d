"""One call of a workflow: get hold of the run, then execute a segment or show what is settled."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from workflow.admission import Shown, Start, admit
from workflow.bridge import Host
from workflow.events import InterruptEvent
from workflow.observing import observer_of
from workflow.output import Output
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

    async def execute(self, host: Host, output: Output) -> StateT:
        """The state in which the run was settled, or in which it was found settled."""
        admitted = await self._admit(host)
        if admitted is Shown.OUTCOME:
            return outcome_state(self.store, self.plan.seed())
        if admitted is Shown.WAITING:
            return waiting_state(self.store, self.plan.seed())
        state = await self._segment(admitted, host, output)
        request = state.interrupt_request
        if request is not None:
            await host.blocking(lambda: output.put(InterruptEvent(request)))
        return state

    def give_up(self, error: BaseException) -> None:
        """Mark the run failed at once, if it is ours and not settled. Its node, if one runs, can write nothing any more."""
        self.store.close(error)

    async def _segment(self, path: RecordedPath, host: Host, output: Output) -> StateT:
        """Execute, and report how it ended once that is recorded."""
        observer = observer_of(self.plan.listeners, self.store)
        try:
            state = await Segment(self.plan, self.store, path, host, output, observer).run()
        except BaseException as error:
            observer.failed(error)
            raise
        observer.settled(state.interrupt_request)
        return state

    async def _admit(self, host: Host) -> RecordedPath | Shown:
        try:
            return await host.finishing(lambda: admit(self.store, self.request, self.start))
        except BaseException as error:
            # Whoever is cancelled here may have claimed the run already.
            await host.finishing(lambda failure=error: self.store.fail(failure))
            raise
