"""A fork with a left and a right branch: what several files of tests here play with."""

from pydantic import Field

from workflow import Event, ParallelEvent, StartEvent, StopEvent, WorkflowState, branch_id


class Fork(ParallelEvent):
    pass


class Left(Event):
    number: int = 0


class Right(Event):
    items: list[int] = Field(default_factory=list)


class After(Event):
    pass


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    state["seen"] = ["fork"]
    return Fork({"left": Left(), "right": Right()})


def left(event: Left, state: WorkflowState) -> StopEvent:
    state["seen"].append("left")
    return StopEvent(state["seen"])


def right(event: Right, state: WorkflowState) -> StopEvent:
    state["seen"].append("right")
    state["mine"] = True
    return StopEvent(state["seen"])


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent({"results": event.results, "state": state.all(), "branch": branch_id()})
