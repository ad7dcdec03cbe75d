"""The explorer: the engine under every fault and every order of events, without chance and without waiting.

In order of reading: `scheduler` (one baton for many threads) and `threads` (locks that pass it on), `universe` (processes that
reach one store and may die), `rules` and `ledger` (what must hold between any two commits), `world` (effects outside),
`journey` and `desk` (workflows), `driver` (whoever brings a run to its end), `crashes`, `scenario` and `explore` (ways to go
through it all), `scenarios/` (who contends; how to add one stands in `scenario`), `seeds` (what ever broke). For branches:
`pools` and `loops` (how they run at once), `fan` and `analysis` (workflows), `played` (their timing drawn from a seed).

``EXPLORE_SCHEDULES=20000 python -m pytest tests/simulation`` is the long form: that many random schedules, spread over the
scenarios, and wider walks beside them. Without it the short form runs in under a minute. ``EXPLORE_SEED="scenario/17"`` plays
one random schedule again, whose trace a failure prints.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.simulation.engine import simulated_engine


@dataclass(frozen=True)
class Effort:
    """How much to explore. ``schedules`` is what was asked for in all; 0 is the short form."""

    schedules: int

    @property
    def is_long(self) -> bool:
        """Whether somebody asked for more than the short form."""
        return self.schedules > 0

    def share(self, of: int, short: int) -> int:
        """The part of one of so many tests; ``short`` in the short form."""
        return -(-self.schedules // of) if self.is_long else short


@pytest.fixture(scope="session")
def effort() -> Effort:
    """Return how much to explore."""
    return Effort(int(os.environ.get("EXPLORE_SCHEDULES", "0")))


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    """Give the engine simulated locks and scripted renewals."""
    with simulated_engine():
        yield


@pytest.fixture
def explored(record_property: Callable[[str, object], None]) -> Callable[[int], None]:
    """Return what notes how many schedules a test has played."""
    return lambda schedules: record_property("schedules", schedules)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the long form take its time."""
    if os.environ.get("EXPLORE_SCHEDULES"):
        here = Path(__file__).parent
        for item in (item for item in items if here in item.path.parents):
            item.add_marker(pytest.mark.timeout(3600))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many schedules were explored in all."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    played = [value for report in reports for name, value in report.user_properties if name == "schedules"]
    if played:
        terminalreporter.write_line(f"explored {sum(played)} schedules in {len(played)} tests")
