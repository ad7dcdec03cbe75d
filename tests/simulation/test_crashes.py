"""One run of the reference workflow, with a fault at every single store operation, against the run without any."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.simulation.crashes import Definition, driven, verdict
from tests.simulation.driver import Recovery
from tests.simulation.engine import folding
from tests.simulation.journey import journey
from tests.simulation.universe import Fault, Universe

plain = partial(journey)
kept = partial(journey, retain_completion=True)
WAYS = [
    pytest.param(plain, Recovery.RUN, id="plain-run"),
    pytest.param(kept, Recovery.RESUME, id="kept-resume"),
    pytest.param(kept, Recovery.RESERVED, id="kept-reserved"),
]


def check(universe: Universe, expected: Universe) -> None:
    """Fail with everything that is needed to see it again."""
    wrong = verdict(universe, expected)
    assert not wrong, "\n".join([f"faults: {universe.struck}", *wrong, *universe.lines()])


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize(("define", "recovery"), WAYS)
def test_a_fault_at_any_operation_changes_neither_the_end_nor_a_recorded_effect(
    define: Definition, recovery: Recovery, fault: Fault, explored: Callable[[int], None]
) -> None:
    expected = driven(define, recovery)
    check(expected, expected)
    for number in range(expected.operations):
        check(driven(define, recovery, {number: fault}), expected)
    explored(expected.operations)


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_fault_at_any_operation_of_a_run_that_folds_its_steps_changes_nothing(
    after: int, explored: Callable[[int], None]
) -> None:
    expected = driven(kept, Recovery.RESUME)
    with folding(after):
        operations = driven(kept, Recovery.RESUME).operations
        for number in range(operations):
            check(driven(kept, Recovery.RESUME, {number: Fault.CRASH_AFTER}), expected)
    explored(operations)


@pytest.mark.parametrize(("define", "recovery"), WAYS)
def test_faults_during_the_recovery_change_nothing_either(
    define: Definition, recovery: Recovery, explored: Callable[[int], None], effort: Any
) -> None:
    expected = driven(define, recovery)
    dice = random.Random(f"{recovery}")
    rounds = effort.share(of=20, short=20)
    for _ in range(rounds):
        places = sorted(dice.sample(range(expected.operations + 10), dice.choice((2, 2, 3))))
        faults = {place: dice.choice(tuple(Fault)) for place in places}
        check(driven(define, recovery, faults), expected)
    explored(rounds)
