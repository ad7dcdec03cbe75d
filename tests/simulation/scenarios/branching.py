"""Several workers and people look after a run whose branches are under way at once."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.simulation.driver import Recovery
from tests.simulation.fan import Outdoors, fan, fan_in_turn
from tests.simulation.scenario import Actor, Scenario, act, renewing, time_passes
from tests.simulation.scenarios.answering import click, one_answer
from tests.simulation.scenarios.fleet import attend
from tests.simulation.universe import ID, LEASE, Process, Universe
from workflow import (
    ApprovalRequest,
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    ParallelEvent,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
    emit,
    interrupt,
)

__all__ = ["FLEETS", "SCENARIOS"]


class Pair(ParallelEvent):
    pass


class Ask(Event):
    pass


class Work(Event):
    pass


def split(event: StartEvent, state: WorkflowState) -> Pair:
    return Pair({"ask": Ask(), "too": Ask(), "work": Work()})


def ask(event: Ask, state: WorkflowState, resources: Outdoors) -> StopEvent:
    answer = resources.world.answer("approval", interrupt(ApprovalRequest("send it?")))
    return StopEvent([answer["price"], resources.effect("send")])


def work(event: Work, state: WorkflowState, resources: Outdoors) -> StopEvent:
    emit("working")
    return StopEvent(resources.effect("work"))


def meet(event: Pair, state: WorkflowState, resources: Outdoors) -> StopEvent:
    resources.world.final({"results": event.results})
    return StopEvent(event.results)


def pair(process: Process, **options: Any) -> Workflow[WorkflowState]:
    """Two branches that ask beside one that works: few operations, for many interleavings."""
    given: dict[str, Any] = {"lease_timeout": LEASE, "branch_runner": ConcurrentBranchRunner(), **options}
    nodes = (split, ask, work, meet)
    return Workflow(ID, nodes=nodes, persistence=process.store, clock=process.clock, resources=Outdoors(process), **given)


def asked(universe: Universe) -> None:
    """A run that waits in one branch; outside a schedule its branches come one after the other."""
    universe.process("asker").workflow.run()


def cancel(process: Process) -> None:
    """End the run, wherever it stands."""
    process.call("cancel", process.workflow.cancel)


def leave(process: Process) -> None:
    """Read one item, then go away."""
    process.call("start", lambda: _first_item(process))


def _first_item(process: Process) -> Any:
    with process.workflow.events() as stream:
        items: Iterator[Any] = iter(stream)
        return next(items, None)


def workers(size: int, turns: int, recovery: Recovery) -> tuple[Actor, ...]:
    """Workers that attend to the run, the renewals of the first, and time."""
    attending = [Actor(f"worker {number}", attend(turns, recovery)) for number in range(size)]
    return (*attending, renewing("worker 0", 3), time_passes(3, LEASE / 2 + 1), time_passes(1, 3600, name="hours"))


run = act("start")
resume = act("resume", ExecutionRequest.resume())
kept = partial(pair, retain_completion=True)

SCENARIOS = [
    Scenario("two runs of branches", kept, (Actor("a", run), Actor("b", run))),
    Scenario("branches are answered by two", kept, (Actor("a", click), Actor("b", click)), asked, one_answer),
    Scenario("branches are taken over", kept, (Actor("a", run), Actor("b", resume), time_passes())),
    Scenario(
        "branches are renewed and taken over",
        kept,
        (Actor("a", run), renewing("a", 2), Actor("b", resume), time_passes(2, LEASE / 2 + 1)),
    ),
    Scenario("branches are cancelled", partial(pair), (Actor("a", run), Actor("b", cancel), time_passes())),
    Scenario("branches are read by somebody who leaves", kept, (Actor("a", leave), Actor("b", resume))),
]
"""Short ones, whose interleavings can be walked."""
FLEETS = [
    Scenario("two workers and branches", partial(fan), workers(2, 8, Recovery.RESUME), same_end=False),
    Scenario(
        "three workers and kept branches", partial(fan, retain_completion=True), workers(3, 6, Recovery.RUN), same_end=False
    ),
    Scenario("two workers and branches in turn", partial(fan_in_turn), workers(2, 8, Recovery.RESUME), same_end=False),
]
"""Long ones, for random schedules."""
