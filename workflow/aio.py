"""A workflow's calls for asyncio: the core runs on the caller's loop, the store and synchronous nodes in threads."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from workflow.bridge import LoopHost
from workflow.engine import WorkflowRunSnapshot
from workflow.events import Event
from workflow.output import NoOutput
from workflow.pending import PendingExecution, Translator
from workflow.requests import ExecutionRequest
from workflow.state import WorkflowState
from workflow.stream import AsyncEventStream

if TYPE_CHECKING:
    from workflow.definition import Workflow

__all__ = ["AsyncWorkflow"]

StateT = TypeVar("StateT", bound=WorkflowState)


class AsyncWorkflow(Generic[StateT]):
    """`Workflow.aio`."""

    def __init__(self, workflow: "Workflow[StateT]") -> None:
        self._workflow = workflow
        self._host = LoopHost()

    async def run(self, request: ExecutionRequest | None = None) -> StateT:
        """See `Workflow.run`."""
        return await self._workflow.prepare(request).execute(self._host, NoOutput())

    def events(self, request: ExecutionRequest | None = None) -> AsyncEventStream[StateT]:
        """See `Workflow.events`."""
        self._workflow.workflow_id  # noqa: B018 - an unbound definition is refused here, not at the first pull
        return AsyncEventStream(lambda: self._workflow.prepare(request))

    async def ignite(self, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None) -> str:
        """See `Workflow.ignite`."""
        return await self._host.blocking(lambda: self._workflow.ignite(event, run_id=run_id, tag=tag))

    async def inspect(self) -> WorkflowRunSnapshot | None:
        """See `Workflow.inspect`."""
        return await self._host.blocking(self._workflow.inspect)

    async def abandon(self, run_id: str | None = None, execution_attempt: int | None = None) -> bool:
        """See `Workflow.abandon`."""
        return await self._host.blocking(lambda: self._workflow.abandon(run_id, execution_attempt))

    async def acknowledge(self, run_id: str) -> None:
        """See `Workflow.acknowledge`."""
        await self._host.blocking(lambda: self._workflow.acknowledge(run_id))

    async def cancel(self, run_id: str | None = None) -> bool:
        """See `Workflow.cancel`."""
        return await self._host.blocking(lambda: self._workflow.cancel(run_id))

    async def submit_inputs(self, payload: Any, translator: Translator | None = None) -> PendingExecution[StateT]:
        """See `Workflow.submit_inputs`."""
        return await self._host.blocking(lambda: self._workflow.submit_inputs(payload, translator))
