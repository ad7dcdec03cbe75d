"""Several processes begin a run at once."""

from functools import partial

from tests.simulation.desk import desk, errand
from tests.simulation.driver import RESERVED, Recovery
from tests.simulation.scenario import Actor, Scenario, Script, act, time_passes
from tests.simulation.universe import Process, Universe
from workflow import ExecutionRequest

__all__ = ["SCENARIOS"]


def ignite(run_id: str | None = None) -> Script:
    """Record a start, then continue what is there."""

    def script(process: Process) -> None:
        process.call("ignite", lambda: process.workflow.ignite(run_id=run_id))
        process.call("resume", lambda: process.workflow.run(ExecutionRequest.resume()))

    return script


def dead_run(universe: Universe) -> None:
    """A run whose process was recorded and never began: its lease ends soon."""
    process = universe.process("gone")
    process.workflow.ignite(run_id=RESERVED)


run = act("start")
start_anew = act("start", ExecutionRequest.start())
start_reserved = act("start", ExecutionRequest.start(run_id=RESERVED, recover_failed=True))

SCENARIOS = [
    Scenario("two plain runs", partial(desk), (Actor("a", run), Actor("b", run)), switches=None),
    Scenario("two runs that fail once", partial(errand), (Actor("a", run), Actor("b", run)), switches=None),
    Scenario("a run against a superseding start", partial(errand), (Actor("a", run), Actor("b", start_anew), time_passes())),
    Scenario("two ignitions and a run", partial(desk), (Actor("a", ignite()), Actor("b", ignite()), Actor("c", run))),
    Scenario(
        "a reserved start delivered twice",
        partial(errand, retain_completion=True),
        (Actor("a", start_reserved), Actor("b", start_reserved), time_passes()),
        recovery=Recovery.RESERVED,
    ),
    Scenario(
        "a pending run is wanted by three",
        partial(desk),
        (Actor("a", act("resume", ExecutionRequest.resume())), Actor("b", start_reserved), Actor("c", run)),
        prepare=dead_run,
    ),
]
