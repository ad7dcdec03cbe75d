"""A mesh in memory whose clock the test turns, and a store that can be entered, or left for good, at any operation."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from mesh.testing import ScriptedAgentFactory
from persistence import InMemoryPersistence
from workers import MeshClient, Settings, register
from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook
from workers.testing import InMemoryRuntime
from workflow import Event, ExecutionRequest, ManualClock, StopEvent, Workflow, WorkflowState
from workflow.store import IGNITIONS_LOG

START = dt.datetime(2026, 11, 30, 5, 30, tzinfo=dt.UTC)
"""A Monday, half an hour before seven in Vienna."""


NEVER = 200 * 24 * 3600
"""Seconds between sweeps where a test is not about them."""


class Reported(Event):
    region: str = "north"


def report(event: Reported, state: WorkflowState) -> StopEvent:
    return StopEvent(event.region)


class Killed(BaseException):
    """The process ends here."""


class EnteredStore:
    """A store in memory. Before the operation number ``at`` something else happens; the operations are counted."""

    def __init__(self, store: InMemoryPersistence) -> None:
        self._store = store
        self.count = 0
        self.at: int | None = None
        self.happens: Callable[[], None] = lambda: None
        self.afterwards = False
        """Whether it happens after the operation rather than before."""

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._store, name)

        def enter(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            here = self.count == self.at
            if here and not self.afterwards:
                self.happens()
            result = operation(*arguments, **named)
            if here and self.afterwards:
                self.happens()
            return result

        return enter


class TownRuntime(InMemoryRuntime):
    """A runtime on the town's clock, and on its store, which other processes share."""

    def __init__(self, town: "Town") -> None:
        agents = ScriptedAgentFactory({"research": "r", "operations": "o", "briefing": "b"})
        self.entered = EnteredStore(town.kept)
        super().__init__(town.settings, agents=agents, clock=town.clock, store=cast(Any, self.entered))


class Town:
    """One mesh: a store, a clock, and processes that look at the schedules."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.clock = ManualClock(START)
        self.kept = InMemoryPersistence()

    def process(self) -> "LookingProcess":
        return LookingProcess(self)

    def advance(self, **duration: float) -> None:
        self.clock.advance(dt.timedelta(**duration).total_seconds())

    def started(self, name: str = "report") -> list[str]:
        """The workflow ids of all runs that were ever recorded under a name, in their order."""
        return [entry.data.decode() for entry in self.kept.read_log(f"{IGNITIONS_LOG}{name}", limit=10_000)]


class LookingProcess:
    """One process of a town."""

    def __init__(self, town: Town) -> None:
        self.runtime = TownRuntime(town)
        self.client = MeshClient(runtime=self.runtime)
        self._look = ScheduleLook(self.client, scheduled(town.settings), now=town.clock.now)

    def look(self) -> int:
        return self._look.look()

    def look_patiently(self) -> None:
        self._look.look_patiently()

    def work(self, workflow_id: str, name: str = "report") -> None:
        self.runtime.definition(name, workflow_id).run(ExecutionRequest.resume())


@pytest.fixture
def found_town(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Town]:
    """Return a function that makes a mesh with one schedule of its own, unless told otherwise."""
    monkeypatch.setenv("JARVIS_REDIS_URL", "redis://nowhere.invalid:1/0")  # named where resources are made, never asked
    register("report", lambda workflow_id: Workflow(workflow_id, nodes=[report], start_event=Reported(), lease_timeout=60))

    def make(*tables: Mapping[str, Any], **given: Any) -> Town:
        given.setdefault("mesh", {"operator": {"zone": "Europe/Vienna"}})
        given.setdefault("schedule", {"watchdog_every": NEVER})
        return Town(Settings.load(schedules=tables, **given))

    return make


@pytest.fixture
def town(found_town: Callable[..., Town]) -> Town:
    """A mesh with a report every hour."""
    return found_town({"name": "hourly", "workflow": "report", "cron": "0 * * * *"})


@pytest.fixture
def killed() -> type[BaseException]:
    """What ends a process of these tests."""
    return Killed
