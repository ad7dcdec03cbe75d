"""Several people, and time itself, answer one question at once."""

from collections.abc import Iterable
from functools import partial

from tests.simulation.desk import CLOSES, desk
from tests.simulation.driver import answer
from tests.simulation.scenario import Actor, Scenario, act, time_passes
from tests.simulation.universe import LEASE, NOON, Process, Universe
from workflow import ExecutionRequest, WorkflowRunSnapshot

__all__ = ["SCENARIOS", "click", "waiting_run"]


def waiting_run(universe: Universe) -> None:
    """A run that waits for an answer."""
    process = universe.process("asker")
    process.workflow.run()


def click(process: Process) -> None:
    """Look at the question, then answer it."""
    seen: WorkflowRunSnapshot | None = process.call("inspect", process.workflow.inspect).value
    if seen is not None and seen.interrupt is not None:
        answer(process, seen, {"by": process.name, "price": 7})


def signalled(process: Process) -> None:
    """Answer by the name of the event alone."""
    request = ExecutionRequest.signal("approval", {"by": process.name, "price": 7})
    process.call("signal", lambda: process.workflow.run(request))


def one_answer(universe: Universe) -> Iterable[str]:
    """Each run accepts one answer."""
    for place, payloads in universe.ledger.accepted.items():
        if len(payloads) != 1:
            yield f"{place} accepted {payloads}"


def discard(process: Process) -> None:
    """Abandon whatever is there."""
    process.call("abandon", process.workflow.abandon)


look_in = act("resume", ExecutionRequest.resume())
deadline = time_passes(1, (CLOSES - NOON).total_seconds())

SCENARIOS = [
    Scenario(
        "two people answer", partial(desk), (Actor("a", click), Actor("b", click)), waiting_run, one_answer, switches=None
    ),
    Scenario(
        "a click, a signal and an idle poll",
        partial(desk),
        (Actor("a", click), Actor("b", signalled), Actor("c", look_in)),
        waiting_run,
        one_answer,
    ),
    Scenario(
        "an answer and the deadline",
        partial(desk),
        (Actor("a", click), Actor("b", look_in), deadline),
        waiting_run,
        one_answer,
        same_end=False,
    ),
    Scenario(
        "an answer while the run is discarded",
        partial(desk),
        (Actor("a", click), Actor("b", discard)),
        waiting_run,
        switches=None,
    ),
    Scenario(
        "an answerer is slow and taken over",
        partial(desk, retain_completion=True),
        (Actor("a", click), Actor("b", look_in), time_passes(1, LEASE + 1)),
        waiting_run,
        one_answer,
    ),
]
