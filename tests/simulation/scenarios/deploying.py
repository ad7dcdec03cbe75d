"""A new version is deployed while workers of the old one still run: who may continue whose runs."""

from collections.abc import Iterable
from typing import Any

from tests.simulation.desk import Desk, errand
from tests.simulation.scenario import Actor, Scenario, act, time_passes
from tests.simulation.universe import Process, Universe
from workflow import ExecutionRequest

__all__ = ["SCENARIOS"]


def versioned(process: Process) -> Desk:
    """Version 1 in processes whose name begins with `old`, in all others version 2, which continues the runs of both."""
    version: dict[str, Any] = {"version": "1"} if _is_old(process.name) else {"version": "2", "compatible_versions": ("1",)}
    return errand(process, **version)


def _is_old(process: str) -> bool:
    return process.startswith("old")


def nothing_continued_backwards(universe: Universe) -> Iterable[str]:
    """No old worker ever claimed a run that a new one had begun."""
    born: dict[str, str] = {}
    for run_id, process in universe.ledger.claims:
        if not _is_old(born.setdefault(run_id, process)) and _is_old(process):
            yield f"{process} claimed the run {run_id}, which {born[run_id]} had begun"


run = act("start")
resume = act("resume", ExecutionRequest.resume())

SCENARIOS = [
    Scenario(
        "an old and a new worker start and resume",
        versioned,
        (Actor("old", run), Actor("new", run), Actor("old too", resume), time_passes()),
        check=nothing_continued_backwards,
    ),
]
