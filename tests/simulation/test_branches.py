"""Forks under every fault and every order of their branches: crashes, contenders, and recoveries on another worker."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.simulation.analysis import analysis
from tests.simulation.crashes import Definition, verdict
from tests.simulation.driver import Recovery
from tests.simulation.engine import folding
from tests.simulation.explore import interleavings, random_schedule
from tests.simulation.fan import WIDTH, fan, fan_in_turn
from tests.simulation.fan_on_a_loop import fan_on_a_loop
from tests.simulation.played import played, undisturbed
from tests.simulation.scenario import Scenario
from tests.simulation.scenarios import branching
from tests.simulation.universe import Fault, Universe

RECOVERIES = 200
"""Times that the worked example is recovered."""
DEATHS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)

plain = partial(fan)
kept = partial(fan, retain_completion=True)
in_turn = partial(fan_in_turn, retain_completion=True)
on_a_loop = partial(fan_on_a_loop)
WAYS = [
    pytest.param(plain, Recovery.RESUME, id="plain-resume"),
    pytest.param(kept, Recovery.RESUME, id="kept-resume"),
    pytest.param(in_turn, Recovery.RESUME, id="in-turn-resume"),
    pytest.param(on_a_loop, Recovery.RESUME, id="on-a-loop-resume"),
]


def check(universe: Universe, expected: Universe) -> None:
    """Fail with everything that is needed to see it again. A crash may take what each branch was about to record."""
    wrong = verdict(universe, expected, at_once=WIDTH)
    assert not wrong, "\n".join([f"faults: {universe.struck}", *wrong, *universe.lines()])


# --- crashes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("define", "recovery"), WAYS)
def test_a_fault_at_any_operation_of_branches_changes_neither_the_end_nor_a_recorded_effect(
    define: Definition, recovery: Recovery, fault: Fault, effort: Any, explored: Callable[[int], None]
) -> None:
    expected, count = undisturbed(define, recovery), 0
    for seed in range(effort.share(of=1000, short=1)):
        timing = f"{fault}/{seed}"
        whole = played(define, recovery, timing)
        check(whole, expected)
        for number in range(whole.operations):
            check(played(define, recovery, timing, {number: fault}), expected)
        count += whole.operations
    explored(count)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_crash_at_any_operation_of_branches_that_fold_their_steps_changes_nothing(
    after: int, explored: Callable[[int], None]
) -> None:
    expected = undisturbed(kept, Recovery.RESUME)
    with folding(after):
        operations = played(kept, Recovery.RESUME, after).operations
        for number in range(operations):
            check(played(kept, Recovery.RESUME, after, {number: Fault.CRASH_AFTER}), expected)
    explored(operations)


@pytest.mark.parametrize(("define", "recovery"), WAYS)
def test_random_timings_with_several_faults_change_nothing(
    define: Definition, recovery: Recovery, effort: Any, explored: Callable[[int], None]
) -> None:
    expected = undisturbed(define, recovery)
    rounds = effort.share(of=20, short=40)
    for seed in range(rounds):
        dice = random.Random(f"{recovery}/{seed}")
        places = dice.sample(range(expected.operations + 10), dice.choice((0, 1, 2, 3)))
        check(played(define, recovery, seed, {place: dice.choice(tuple(Fault)) for place in places}), expected)
    explored(rounds)


def test_the_worked_example_is_recovered_on_another_worker_200_times_out_of_200(explored: Callable[[int], None]) -> None:
    """A worker dies at some operation; another one, with other timings of its branches, ends the run."""
    expected = undisturbed(partial(analysis), Recovery.RESUME)
    right = 0
    for seed in range(RECOVERIES):
        place = random.Random(seed).randrange(2, expected.operations - 2)
        universe = played(partial(analysis), Recovery.RESUME, seed, {place: random.Random(-seed).choice(DEATHS)})
        owners = [process for _, process in universe.ledger.claims]
        right += not verdict(universe, expected, at_once=2) and len(owners) == len(set(owners)) == 2
    explored(RECOVERIES)
    assert right == RECOVERIES


# --- contenders -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in branching.SCENARIOS])
def test_no_walked_interleaving_of_branches_breaks_a_rule(
    scenario: Scenario, effort: Any, explored: Callable[[int], None]
) -> None:
    """Branches that end leave many ways to go on, so that not all are walked; random schedules go where this does not."""
    walk, finding = interleavings(scenario, 2 if effort.is_long else 1, limit=effort.share(of=6, short=150))
    explored(walk.schedules)
    assert finding is None, str(finding)


@pytest.mark.parametrize(
    "scenario", [pytest.param(scenario, id=scenario.name) for scenario in (*branching.SCENARIOS, *branching.FLEETS)]
)
def test_no_random_schedule_of_branches_breaks_a_rule(scenario: Scenario, effort: Any, explored: Callable[[int], None]) -> None:
    count = effort.share(of=10, short=30)
    for seed in range(count):
        finding = random_schedule(scenario, seed)
        assert finding is None, f"seed {seed} of {finding}"
    explored(count)


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in branching.FLEETS])
def test_no_random_schedule_of_branches_that_fold_breaks_a_rule(
    scenario: Scenario, effort: Any, explored: Callable[[int], None]
) -> None:
    count = effort.share(of=20, short=15)
    with folding(2):
        for seed in range(count):
            finding = random_schedule(scenario, seed)
            assert finding is None, f"seed {seed} of {finding}"
    explored(count)
