"""A run is read item by item while others want it, and readers go away in the middle."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.simulation.desk import Desk
from tests.simulation.journey import Outside
from tests.simulation.scenario import Actor, Scenario, Script, act, time_passes
from tests.simulation.universe import ID, Process
from workflow import Event, ExecutionRequest, StartEvent, StopEvent, WorkflowState, emit, memoize

__all__ = ["SCENARIOS"]


class Told(Event):
    pass


def tell(event: StartEvent, state: WorkflowState, resources: Outside) -> Iterator[Any]:
    yield "one"
    state.set("told", memoize("told", lambda: resources.world.effect("told")))
    yield "two"
    return Told()


def close(event: Told, state: WorkflowState, resources: Outside) -> StopEvent:
    emit("closing")
    receipt = memoize("close", lambda: resources.world.effect("close"))
    resources.world.final({**state.all(), "receipt": receipt})
    return StopEvent(result=receipt)


def telling(process: Process, **options: Any) -> Desk:
    """A generator that tells two things around a memo, then a node that tells one."""
    world = Outside(process.world)
    return Desk(ID, nodes=(tell, close), persistence=process.store, clock=process.clock, resources=world, **options)


def reading(items: int | None = None, request: ExecutionRequest | None = None) -> Script:
    """Read the run to its end, or close it after a few items."""

    def script(process: Process) -> None:
        process.call("start", lambda: _read(process, items, request))

    return script


def _read(process: Process, items: int | None, request: ExecutionRequest | None) -> Any:
    with process.workflow.events(request) as stream:
        for number, _ in enumerate(stream, 1):
            if number == items:
                return None
        return stream.state


resume = act("resume", ExecutionRequest.resume())
kept = partial(telling, retain_completion=True)

SCENARIOS = [
    Scenario("a reader and a plain run", partial(telling), (Actor("a", reading()), Actor("b", act("start")))),
    Scenario("a reader leaves while another resumes", kept, (Actor("a", reading(1)), Actor("b", resume))),
    Scenario("a slow reader is taken over", kept, (Actor("a", reading(2)), Actor("b", resume), time_passes())),
]
