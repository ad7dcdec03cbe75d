"""A fork of three branches, each of which asks for the event of its name: what several files of tests here play with."""

from typing import Any

from workflow import Event, ExecutionRequest, ParallelEvent, StartEvent, StopEvent, WorkflowState, branch_id


class Fork(ParallelEvent):
    pass


class Ask(Event):
    pass


class Other(Event):
    pass


class Then(Event):
    answer: Any = None


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({name: Ask() for name in "abc"})


def then(event: Then, state: WorkflowState) -> StopEvent:
    return StopEvent([branch_id(), event.answer])


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


def answer(name: str) -> ExecutionRequest:
    return ExecutionRequest.signal(name, f"to {name}")
