"""A run is ended by several at once: acknowledged, abandoned, cancelled."""

from functools import partial

from tests.simulation.desk import errand
from tests.simulation.driver import RESERVED
from tests.simulation.scenario import Actor, Scenario, act, time_passes
from tests.simulation.universe import Process, Trip, Universe
from workflow import ExecutionRequest

__all__ = ["SCENARIOS"]


def kept_run(universe: Universe) -> None:
    """A retained run, completed at its second attempt."""
    process = universe.process("first")
    try:
        process.workflow.run(ExecutionRequest.start(run_id=RESERVED))
    except Trip:
        process.workflow.run()


def acknowledge(process: Process) -> None:
    """Forget the retained run."""
    process.call("acknowledge", lambda: process.workflow.acknowledge(RESERVED))


def discard(process: Process) -> None:
    """Abandon whatever is there."""
    process.call("abandon", process.workflow.abandon)


run = act("start")
kept = partial(errand, retain_completion=True)

SCENARIOS = [
    Scenario("a kept run is acknowledged twice", kept, (Actor("a", acknowledge), Actor("b", acknowledge)), kept_run),
    Scenario("a kept run is acknowledged and started", kept, (Actor("a", acknowledge), Actor("b", run)), kept_run),
    Scenario(
        "a run is discarded by two while it runs",
        kept,
        (Actor("a", run), Actor("b", discard), Actor("c", discard), time_passes()),
    ),
]
