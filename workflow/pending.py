"""An answer that is ready to be delivered: a workflow, and the request that is fenced by what its giver saw."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from workflow.engine import WorkflowRunSnapshot
from workflow.errors import InputTranslationError
from workflow.interrupts import InterruptRequest
from workflow.requests import ExecutionRequest
from workflow.state import WorkflowState
from workflow.stream import AsyncEventStream, EventStream

if TYPE_CHECKING:
    from workflow.definition import Workflow

__all__ = ["PendingExecution", "Translator", "answer_request"]

StateT = TypeVar("StateT", bound=WorkflowState)
Translator = Callable[[Any, InterruptRequest], Any]
"""Turns an outside payload into the answer that the node expects."""


class PendingExecution(Generic[StateT]):
    """Run it once: a second time is stale, and the answer is delivered once."""

    def __init__(self, workflow: "Workflow[StateT]", request: ExecutionRequest) -> None:
        self._workflow = workflow
        self.request = request

    def run(self) -> StateT:
        """See `Workflow.run`."""
        return self._workflow.run(self.request)

    def events(self) -> EventStream[StateT]:
        """See `Workflow.events`."""
        return self._workflow.events(self.request)

    @property
    def aio(self) -> "AsyncPendingExecution[StateT]":
        """The same calls for asyncio."""
        return AsyncPendingExecution(self._workflow, self.request)


class AsyncPendingExecution(Generic[StateT]):
    """`PendingExecution` for asyncio."""

    def __init__(self, workflow: "Workflow[StateT]", request: ExecutionRequest) -> None:
        self._workflow = workflow
        self.request = request

    async def run(self) -> StateT:
        """See `Workflow.run`."""
        return await self._workflow.aio.run(self.request)

    def events(self) -> AsyncEventStream[StateT]:
        """See `Workflow.events`."""
        return self._workflow.aio.events(self.request)


def answer_request(
    workflow_id: str, snapshot: WorkflowRunSnapshot | None, payload: Any, translator: Translator | None
) -> ExecutionRequest:
    """The fenced answer to what a run waits for. Raises `InputTranslationError` when it waits for nothing."""
    if snapshot is None or snapshot.interrupt is None:
        raise InputTranslationError(f"workflow {workflow_id!r} waits for no answer: there is nothing to submit inputs to")
    answer = payload if translator is None else translator(payload, snapshot.interrupt)
    if answer is None:
        raise InputTranslationError(
            f"workflow {workflow_id!r} waits for an answer, and None is none: submit {{}} for an empty one"
        )
    return ExecutionRequest.resume(
        answer,
        expected_run_id=snapshot.run_id,
        expected_execution_attempt=snapshot.execution_attempt,
        expected_interrupt_id=snapshot.interrupt.id,
    )
