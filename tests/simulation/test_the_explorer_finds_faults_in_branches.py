"""The explorer of branches explored: each fault that is planted in what branches stand on must show."""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

import workflow.path
import workflow.traversal
from tests.simulation.crashes import verdict
from tests.simulation.driver import Recovery
from tests.simulation.fan import WIDTH, fan
from tests.simulation.played import played, undisturbed
from tests.simulation.scenario import reference
from tests.simulation.threads import BatonLock
from tests.simulation.universe import Fault
from workflow.control import ActiveInterrupt, Control
from workflow.journal import StateJournal
from workflow.parallel import ParallelEvent
from workflow.store import RunStore

TRIES = 25
"""Timings, half of them with a fault, of which one at least must show what was planted."""
Plant = Callable[[], AbstractContextManager[Any]]


@pytest.fixture(autouse=True)
def no_planted_reference() -> Iterator[None]:
    """Let no other test compare with what a planted engine did."""
    yield
    reference.cache_clear()


def branches_whose_steps_collide() -> AbstractContextManager[Any]:
    return patch.object(workflow.path, "branch_prefix", lambda path, fork, branch: f"{path}same/")


def forks_whose_rounds_collide() -> AbstractContextManager[Any]:
    prefix = workflow.path.branch_prefix
    return patch.object(workflow.path, "branch_prefix", lambda path, fork, branch: prefix(path, 0, branch))


def locks_that_do_not_lock() -> AbstractContextManager[Any]:
    return patch.object(BatonLock, "acquire", lambda lock: True)


def waits_that_displace_each_other() -> AbstractContextManager[Any]:
    def with_interrupt(control: Control, reached: ActiveInterrupt) -> Control:
        numbered = replace(reached, request=reached.request.with_id(control.next_interrupt_id))
        return replace(control, interrupt=numbered, next_interrupt_id=control.next_interrupt_id + 1)

    return patch.object(Control, "with_interrupt", with_interrupt)


def answers_that_forget_the_line() -> AbstractContextManager[Any]:
    def answered(control: Control, following: ActiveInterrupt | None) -> Control:
        return replace(control, interrupt=None, pending_steps=())

    return patch.object(Control, "answered", answered)


def deferred_waits_that_are_not_recorded() -> AbstractContextManager[Any]:
    commit = RunStore.commit

    def forgetful(store: RunStore, records: Any, *given: Any, **more: Any) -> None:
        commit(store, {} if callable(records) else records, *given, **more)

    return patch.object(RunStore, "commit", forgetful)


def results_that_outlive_their_round() -> AbstractContextManager[Any]:
    kept: dict[str, Any] = {}

    def stale(event: ParallelEvent) -> ParallelEvent:
        copy = event.model_copy()
        copy._results = kept
        return copy

    return patch.object(ParallelEvent, "fresh", stale)


def branches_that_share_their_state() -> AbstractContextManager[Any]:
    return patch.object(workflow.traversal.WorkflowState, "model_copy", lambda state, **options: state)


def branches_that_record_nothing_of_their_state() -> AbstractContextManager[Any]:
    change = StateJournal.change

    def nothing(journal: StateJournal, state: Any) -> Any:
        return replace(change(journal, state), values={}) if journal._recorded is not None else change(journal, state)

    return patch.object(StateJournal, "change", nothing)


PLANTS: list[Plant] = [
    branches_whose_steps_collide,
    forks_whose_rounds_collide,
    locks_that_do_not_lock,
    waits_that_displace_each_other,
    answers_that_forget_the_line,
    deferred_waits_that_are_not_recorded,
    results_that_outlive_their_round,
    branches_that_share_their_state,
    branches_that_record_nothing_of_their_state,
]


@pytest.mark.parametrize("plant", [pytest.param(plant, id=plant.__name__) for plant in PLANTS])
def test_a_fault_that_is_planted_in_branches_is_found(plant: Plant) -> None:
    expected = undisturbed(fan, Recovery.RESUME)
    with plant():
        assert any(
            verdict(played(fan, Recovery.RESUME, seed, faults_of(seed)), expected, at_once=WIDTH) for seed in range(TRIES)
        )


def test_without_a_planted_fault_the_same_timings_show_nothing() -> None:
    expected = undisturbed(fan, Recovery.RESUME)
    for seed in range(TRIES):
        assert verdict(played(fan, Recovery.RESUME, seed, faults_of(seed)), expected, at_once=WIDTH) == []


def test_a_seed_gives_the_same_universe_each_time() -> None:
    first, again = (played(fan, Recovery.RESUME, "same", {20: Fault.CRASH_AFTER}) for _ in range(2))
    assert without_ids(first.lines()) == without_ids(again.lines())


def faults_of(seed: int) -> dict[int, Fault]:
    """A crash somewhere, in every other schedule."""
    return {random.Random(seed).randrange(5, 50): Fault.CRASH_AFTER} if seed % 2 else {}


def without_ids(lines: list[str]) -> list[str]:
    """A trace without what is drawn anew each time: the ids of runs."""
    return [line for line in lines if "inspect" not in line]
