"""A workflow with everything a picture can show: a loop, a fork with a fork inside, and a node that nothing reaches."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from workflow import Event, Node, ParallelEvent, StopEvent, WorkflowState


class Asked(Event):
    pass


class Page(Event):
    pass


class Figures(Event):
    pass


class Checked(Event):
    pass


class Left(Event):
    pass


class Right(Event):
    pass


class Lost(Event):
    pass


class Sides(ParallelEvent):
    declared_branches: ClassVar = {"left": Left, "right": Right}


class Work(ParallelEvent):
    declared_branches: ClassVar = {"pages": Page, "figures": Figures}


class Split(Node):
    def __call__(self, event: Asked, state: WorkflowState) -> Work:
        return Work({"pages": Page(), "figures": Figures()})


class Read(Node):
    def __call__(self, event: Page, state: WorkflowState) -> Page | StopEvent | None:
        return StopEvent()


class Count(Node):
    def __call__(self, event: Figures, state: WorkflowState) -> Sides:
        return Sides({"left": Left(), "right": Right()})


def left(event: Left, state: WorkflowState) -> StopEvent:
    return StopEvent()


def right(event: Right, state: WorkflowState) -> StopEvent:
    return StopEvent()


class Weigh(Node):
    def __call__(self, event: Sides, state: WorkflowState) -> Checked:
        return Checked()


class Check(Node):
    def __call__(self, event: Checked, state: WorkflowState) -> StopEvent:
        return StopEvent()


class Gather(Node):
    def __call__(self, event: Work, state: WorkflowState) -> Asked | StopEvent:
        return StopEvent()


class Unreached(Node):
    def __call__(self, event: Lost, state: WorkflowState) -> StopEvent:
        return StopEvent()


@pytest.fixture
def store(memory: Any) -> Any:
    """Return a store in memory: what these tests are about is not the store."""
    return memory


@pytest.fixture
def forking(define: Callable[..., Any]) -> Any:
    """Return that workflow."""
    nodes = (Split(), Read(), Count(), left, right, Weigh(), Check(), Gather(), Unreached())
    return define(*nodes, start_event=Asked())
