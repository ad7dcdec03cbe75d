"""A fleet of workers and people look after one long run at the same time, each doing what seems right at the moment."""

from functools import partial

from tests.simulation.driver import Recovery, next_call, recover
from tests.simulation.journey import journey
from tests.simulation.scenario import Actor, Scenario, Script, renewing, time_passes
from tests.simulation.universe import Process
from workflow import WorkflowRunSnapshot

__all__ = ["SCENARIOS"]


def attend(turns: int, recovery: Recovery) -> Script:
    """Look at the run and do what it needs, a few times."""

    def script(process: Process) -> None:
        for _ in range(turns):
            seen: WorkflowRunSnapshot | None = process.call("inspect", process.workflow.inspect).value
            if seen is not None:
                next_call(process, seen, recovery)
            elif not process.universe.ledger.ended:
                recover(process, Recovery.RUN)

    return script


def fleet(size: int, recovery: Recovery) -> tuple[Actor, ...]:
    """Workers, the renewals of the first, and time."""
    workers = [Actor(f"worker {number}", attend(5, recovery)) for number in range(size)]
    return (*workers, renewing("worker 0", 3), time_passes(4, 31), time_passes(2, 3600, name="hours"))


SCENARIOS = [
    Scenario("two workers that resume", partial(journey), fleet(2, Recovery.RESUME), same_end=False),
    Scenario("three workers that run", partial(journey, retain_completion=True), fleet(3, Recovery.RUN), same_end=False),
    Scenario("three workers that resume", partial(journey, retain_completion=True), fleet(3, Recovery.RESUME), same_end=False),
]
