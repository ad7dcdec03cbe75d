"""A run changes hands: slow owners, expired and renewed leases, recoveries."""

from functools import partial

from tests.simulation.desk import desk, errand
from tests.simulation.scenario import Actor, Scenario, act, renewing, time_passes
from tests.simulation.universe import LEASE, Process, Universe
from workflow import ExecutionRequest

__all__ = ["SCENARIOS"]


def failed_run(universe: Universe) -> None:
    """A run whose node has failed."""
    process = universe.process("first")
    process.call("start", process.workflow.run)


def discard(process: Process) -> None:
    """Abandon whatever is there."""
    process.call("abandon", process.workflow.abandon)


run = act("start")
resume = act("resume", ExecutionRequest.resume())

SCENARIOS = [
    Scenario("a slow owner and a takeover", partial(desk), (Actor("a", run), Actor("b", resume), time_passes())),
    Scenario(
        "a renewed owner and a takeover",
        partial(errand),
        (Actor("a", run), renewing("a", 2), Actor("b", resume), time_passes(2, LEASE / 2 + 1)),
    ),
    Scenario("two recoveries of a failure", partial(errand), (Actor("a", run), Actor("b", resume)), failed_run, switches=None),
    Scenario(
        "a recovery while the run is discarded",
        partial(errand),
        (Actor("a", run), Actor("b", discard), time_passes()),
        failed_run,
    ),
    Scenario(
        "a slow owner, a takeover and a discarding",
        partial(errand, retain_completion=True),
        (Actor("a", run), Actor("b", resume), Actor("c", discard), time_passes()),
    ),
]
