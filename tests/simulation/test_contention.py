"""Several processes act on one run at once: every interleaving up to a bound, and random schedules with faults."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation import seeds
from tests.simulation.engine import folding
from tests.simulation.explore import interleavings, random_schedule, replayed
from tests.simulation.scenario import Scenario
from tests.simulation.scenarios.catalogue import CONTENDED, FLEETS, SCENARIOS

NAMES = [pytest.param(scenario, id=scenario.name) for scenario in CONTENDED]


@pytest.mark.parametrize("scenario", NAMES)
def test_no_interleaving_within_the_bound_breaks_a_rule(
    scenario: Scenario, effort: Any, explored: Callable[[int], None]
) -> None:
    further = scenario.switches is not None and effort.is_long
    walk, finding = interleavings(scenario, (scenario.switches or 0) + 1 if further else scenario.switches)
    explored(walk.schedules)
    assert finding is None, str(finding)


@pytest.mark.parametrize("scenario", NAMES)
def test_no_random_schedule_with_faults_breaks_a_rule(scenario: Scenario, effort: Any, explored: Callable[[int], None]) -> None:
    play_seeds(scenario, effort.share(of=len(SCENARIOS), short=15), explored)


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in FLEETS])
def test_no_random_schedule_of_a_fleet_breaks_a_rule(scenario: Scenario, effort: Any, explored: Callable[[int], None]) -> None:
    play_seeds(scenario, effort.share(of=len(SCENARIOS), short=15), explored)


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in FLEETS])
def test_no_random_schedule_of_a_fleet_breaks_a_rule_while_steps_are_folded(
    scenario: Scenario, effort: Any, explored: Callable[[int], None]
) -> None:
    with folding(2):
        play_seeds(scenario, effort.share(of=2 * len(SCENARIOS), short=10), explored)


def play_seeds(scenario: Scenario, count: int, explored: Callable[[int], None]) -> None:
    """Play so many seeds, and name the one that broke something."""
    for seed in range(count):
        finding = random_schedule(scenario, seed)
        assert finding is None, f"seed {seed} of {finding}"
    explored(count)


@pytest.mark.parametrize(("name", "seed"), [*seeds.SEEDS, *seeds.asked_for()])
def test_a_seed_that_once_broke_a_rule_does_not_any_more(name: str, seed: int) -> None:
    finding = random_schedule(SCENARIOS[name], seed)
    assert finding is None, str(finding)


@pytest.mark.parametrize(("name", "schedule"), seeds.SCHEDULES)
def test_a_schedule_that_once_broke_a_rule_does_not_any_more(name: str, schedule: str) -> None:
    finding = replayed(SCENARIOS[name], schedule)
    assert finding is None, str(finding)
