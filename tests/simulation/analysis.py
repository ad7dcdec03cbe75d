"""The worked example of branches: a picture is described and read at the same time, and a join merges both."""

from typing import Any

from tests.simulation.fan import Outdoors
from tests.simulation.universe import ID, LEASE, Process
from workflow import ConcurrentBranchRunner, Event, ParallelEvent, StartEvent, StopEvent, Workflow, WorkflowState

__all__ = ["Analysis", "analysis"]


class Picture(ParallelEvent):
    pass


class Read(Event):
    url: str


class Checked(Event):
    data: str


class Describe(Event):
    url: str


class AnalysisState(WorkflowState):
    url: str = "photo.jpg"
    analysis: dict[str, Any] | None = None


def look(event: StartEvent, state: AnalysisState) -> Picture:
    return Picture({"structured": Read(url=state.url), "description": Describe(url=state.url)})


def read(event: Read, state: AnalysisState, resources: Outdoors) -> Checked:
    return Checked(data=resources.effect("read"))


def check(event: Checked, state: AnalysisState, resources: Outdoors) -> StopEvent:
    return StopEvent([event.data, resources.effect("check")])


def describe(event: Describe, state: AnalysisState, resources: Outdoors) -> StopEvent:
    return StopEvent(resources.effect("describe"))


def merge(event: Picture, state: AnalysisState, resources: Outdoors) -> StopEvent:
    state.analysis = {"data": event.get_result("structured"), "description": event.get_result("description")}
    resources.world.final(state.all())
    return StopEvent(state.analysis)


class Analysis(Workflow[AnalysisState]):
    lease_timeout = LEASE


def analysis(process: Process) -> Analysis:
    """The workflow as one process defines it."""
    nodes = (look, read, check, describe, merge)
    runner = ConcurrentBranchRunner()
    world = Outdoors(process)
    return Analysis(ID, nodes=nodes, persistence=process.store, clock=process.clock, resources=world, branch_runner=runner)
