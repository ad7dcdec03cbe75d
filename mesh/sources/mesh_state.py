"""The mesh's own state as a source: who beats, which runs failed, what waits.

The facts come as data from whoever runs the mesh. This file only says which of them a person should see.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mesh.sources.item import Item, Kind, Reading, Severity
from mesh.sources.text import clean
from mesh.sources.window import Window

STALE_AFTER_SECONDS = 300.0
MAX_FAILED_RUNS = 5
SOURCE = "mesh"


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run that ended badly, or waits for a person to retry it."""

    workflow_id: str
    at: dt.datetime
    reason: str


@dataclass(frozen=True, slots=True)
class MeshFacts:
    """The mesh at the moment `at` (aware).

    `agents`: every agent that should beat, and when it was last heard (None: never). `waiting`: messages per queue.
    """

    at: dt.datetime
    agents: Mapping[str, dt.datetime | None] = field(default_factory=dict[str, "dt.datetime | None"])
    failed_runs: tuple[FailedRun, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    stale_after_seconds: float = STALE_AFTER_SECONDS


MeshFactsProvider = Callable[[], MeshFacts]
"""Looks at the mesh and returns what it sees. What it raises becomes a gap in the briefing."""


class MeshStateSource:
    """The mesh, as `facts` sees it."""

    name = SOURCE

    def __init__(self, facts: MeshFactsProvider) -> None:
        self._facts = facts

    def read(self, window: Window) -> Reading:
        """Return what is wrong in the mesh, the worst first, and one line that sums it up."""
        return Reading(items=tuple(mesh_items(self._facts(), window)))


def mesh_items(facts: MeshFacts, window: Window) -> Iterator[Item]:
    """Yield an item for each silent agent and each failed run, then the summary."""
    silent = [agent for agent in sorted(facts.agents) if _is_silent(facts, facts.agents[agent])]
    for agent in silent:
        yield _item(f"agent/{agent}", _silence(agent, facts.agents[agent], window), facts.at, Severity.CRITICAL)
    failed = sorted(facts.failed_runs, key=lambda run: (run.at, run.workflow_id), reverse=True)
    for run in failed[:MAX_FAILED_RUNS]:
        text = f"Run {run.workflow_id} failed: {run.reason}"
        yield _item(f"run/{run.workflow_id}", text, run.at, Severity.CRITICAL)
    yield _item("summary", _summary(facts, len(silent)), facts.at, Severity.INFO)


def _is_silent(facts: MeshFacts, last_seen: dt.datetime | None) -> bool:
    return last_seen is None or facts.at - last_seen > dt.timedelta(seconds=facts.stale_after_seconds)


def _silence(agent: str, last_seen: dt.datetime | None, window: Window) -> str:
    if last_seen is None:
        return f"Agent {agent} has never been heard"
    return f"Agent {agent} has not been heard since {window.local(last_seen):%H:%M on %Y-%m-%d}"


def _summary(facts: MeshFacts, silent: int) -> str:
    beating = len(facts.agents) - silent
    agents = f"{beating} of {len(facts.agents)} agents beat" if facts.agents else "no agents are expected"
    runs = f"failed runs: {len(facts.failed_runs)}" if facts.failed_runs else "no run has failed"
    waiting = {queue: count for queue, count in sorted(facts.waiting.items()) if count}
    queues = ", ".join(f"{count} wait in {queue}" for queue, count in waiting.items()) or "nothing waits"
    return f"The mesh: {agents}, {runs}, {queues}"


def _item(key: str, text: str, at: dt.datetime, severity: Severity) -> Item:
    return Item(Kind.MESH, clean(text), SOURCE, key=key, at=at, severity=severity)
