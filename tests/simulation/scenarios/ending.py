"""A run is ended by several at once: acknowledged, abandoned, cancelled."""

from contextlib import suppress
from functools import partial

from tests.simulation.desk import desk, errand
from tests.simulation.driver import RESERVED
from tests.simulation.scenario import Actor, Scenario, act, renewing, time_passes
from tests.simulation.scenarios.answering import click, waiting_run
from tests.simulation.scheduler import Crash
from tests.simulation.universe import LEASE, Fault, Process, Trip, Universe
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


def cancel(process: Process) -> None:
    """End the run, wherever it stands."""
    process.call("cancel", process.workflow.cancel)


def running_run(universe: Universe) -> None:
    """A run that was begun by a process that is gone."""
    process = universe.process("gone")
    universe.faults = lambda number: Fault.CRASH_AFTER if number == 1 else None
    with suppress(Crash):
        process.workflow.run()


run = act("start")
start_reserved = act("start", ExecutionRequest.start(run_id=RESERVED))
resume = act("resume", ExecutionRequest.resume())
kept = partial(errand, retain_completion=True)

SCENARIOS = [
    Scenario(
        "a kept run is acknowledged twice", kept, (Actor("a", acknowledge), Actor("b", acknowledge)), kept_run, switches=None
    ),
    Scenario(
        "a kept run is acknowledged and started", kept, (Actor("a", acknowledge), Actor("b", run)), kept_run, switches=None
    ),
    Scenario(
        "a run is discarded by two while it runs",
        kept,
        (Actor("a", run), Actor("b", discard), Actor("c", discard), time_passes()),
    ),
    Scenario(
        "a run is acknowledged while it runs",
        kept,
        (Actor("a", start_reserved), Actor("b", acknowledge), Actor("c", resume)),
        # A second life of the reserved run would be another run to the world outside.
        restarts=0,
    ),
    Scenario("a run is cancelled while it runs", partial(errand), (Actor("a", run), Actor("b", cancel), time_passes())),
    Scenario("a run is cancelled and kept", kept, (Actor("a", run), Actor("b", cancel), Actor("c", cancel))),
    Scenario(
        "a renewed run is cancelled",
        partial(errand),
        (Actor("a", run), renewing("a"), Actor("b", cancel), time_passes(1, LEASE / 2)),
    ),
    Scenario(
        "a waiting run is answered and cancelled",
        partial(desk),
        (Actor("a", click), Actor("b", cancel)),
        waiting_run,
        switches=None,
    ),
    Scenario(
        "a dead run is cancelled, taken over and started",
        partial(errand),
        (Actor("a", cancel), Actor("b", resume), Actor("c", run), time_passes()),
        running_run,
    ),
]
