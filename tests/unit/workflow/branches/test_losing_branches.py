"""Runs that are cancelled, taken over or given up while their branches are under way, and processes that die."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from persistence import UnreachableError
from workflow import (
    Event,
    ExecutionRequest,
    ParallelEvent,
    RefusalReason,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    branch_id,
    memoize,
)
from workflow.leases import LeaseRenewer
from workflow.store import RunStore

NAMES = ("a", "b", "c")
LEASE = 60
PATIENCE = 10.0
"""Seconds after which a thread that has not come fails its test."""


class Fork(ParallelEvent):
    pass


class Work(Event):
    pass


class Then(Event):
    pass


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({name: Work() for name in NAMES})


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


@pytest.fixture
def ran() -> Counter[str]:
    """Return how often each node has come to its end."""
    return Counter()


@pytest.fixture
def disturbed(concurrent, gates, ran) -> Callable[..., Workflow]:
    """Return what makes a workflow whose branches all run when `disturb` is called, once; they go on afterwards."""
    lock = threading.Lock()

    def make(disturb: Callable[[], Any], **options: Any) -> Workflow:
        def work(event: Work, state: WorkflowState) -> Then:
            gates.open(branch_id())
            for name in NAMES:
                gates.wait(name)
            with lock:
                if not gates.is_open("disturbed"):
                    disturb()
                    gates.open("disturbed")
            ran[f"work {branch_id()}"] += 1
            return Then()

        def then(event: Then, state: WorkflowState) -> StopEvent:
            ran[f"then {branch_id()}"] += 1
            return StopEvent(branch_id())

        return concurrent(fork, work, then, join, lease_timeout=LEASE, lease_renewal=False, **options)

    return make


def test_a_run_that_is_cancelled_under_its_branches_ends_at_once_and_is_cleared_away(
    disturbed, define, run, store, ran
) -> None:
    with pytest.raises(WorkflowRefusedError) as refused:
        run(disturbed(lambda: define().cancel()))
    assert refused.value.reason is RefusalReason.CANCELLED
    assert ran == {f"work {name}": 1 for name in NAMES}
    assert store.load("w") == {}


def test_a_run_that_is_taken_over_under_its_branches_is_left_to_its_new_owner(
    disturbed, define, run, until, clock, ran
) -> None:
    ended: list[Any] = []

    def take_over() -> None:
        other = disturbed(lambda: None, retain_completion=True)
        clock.advance(LEASE + 1)
        taking.append(threading.Thread(target=lambda: ended.append(other.run(ExecutionRequest.resume()).execution)))
        taking[0].start()
        until(lambda: define().inspect().execution_attempt == 2)

    taking: list[threading.Thread] = []
    with pytest.raises(WorkflowRefusedError) as refused:
        run(disturbed(take_over, retain_completion=True))
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    taking[0].join(PATIENCE)
    assert [(each.attempt, each.result) for each in ended] == [(2, {name: name for name in NAMES})]
    assert define().inspect().status is WorkflowStatus.COMPLETED
    assert ran == {**{f"work {name}": 2 for name in NAMES}, **{f"then {name}": 1 for name in NAMES}}


def test_a_store_that_is_out_of_reach_stops_all_branches_and_the_run_recovers(disturbed, run, store, clock, ran) -> None:
    def refuse(call: Any) -> None:
        raise UnreachableError("nobody there")

    definition = disturbed(lambda: setattr(store, "before", refuse))
    with pytest.raises(UnreachableError):
        run(definition)
    assert ran == {f"work {name}": 1 for name in NAMES}
    store.before = lambda call: None
    clock.advance(LEASE + 1)
    assert run(definition, ExecutionRequest.resume()).execution.result == {name: name for name in NAMES}
    assert ran == {**{f"work {name}": 2 for name in NAMES}, **{f"then {name}": 1 for name in NAMES}}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_at_any_operation_loses_at_most_what_its_branches_had_under_way(
    concurrent, run, store, recording, clock, process_death, ran, moment
) -> None:
    """The memo of every branch, its steps, the join: nothing that was recorded is made again, and nothing is missing."""

    def work(event: Work, state: WorkflowState) -> Then:
        state["memo"] = memoize("memo", lambda: ran.update([branch_id()]) or branch_id())
        return Then()

    def then(event: Then, state: WorkflowState) -> StopEvent:
        return StopEvent([branch_id(), state["memo"]])

    def definition(**options: Any) -> Workflow:
        given = {"lease_timeout": LEASE, "lease_renewal": False, "retain_completion": True, **options}
        return concurrent(fork, work, then, join, **given)

    for number in range(100):
        ran.clear()
        dying = recording(store.inner)
        dying.die_at(number, moment)
        try:
            run(definition(persistence=dying))
        except (process_death, UnreachableError):
            clock.advance(LEASE + 1)
        else:
            break
        ended = run(definition(), ExecutionRequest.resume() if definition().inspect() else None).execution
        assert ended.result == {name: [name, name] for name in NAMES}
        assert set(ran) == set(NAMES)
        assert max(ran.values()) <= 2
        definition().acknowledge(ended.run_id)
    assert number > 9


def test_the_lease_is_renewed_while_no_node_of_any_branch_runs_too_long() -> None:
    now = [0.0]
    renewer = LeaseRenewer(lambda: now[0])
    store: Any = object.__new__(RunStore)
    renewal = renewer_of(renewer, store)
    renewer.node_begins(renewal, "a-0")
    now[0] = 50
    renewer.node_begins(renewal, "b-0")
    assert not renewal.is_over_time(100)
    assert renewal.is_over_time(101)
    renewer.node_ends(renewal, "a-0")
    assert not renewal.is_over_time(150)
    assert renewal.is_over_time(151)
    renewer.node_ends(renewal, "b-0")
    assert not renewal.is_over_time(1000)


def renewer_of(renewer: LeaseRenewer, store: RunStore) -> Any:
    """A renewal whose nodes may run for 100 seconds; nothing renews it, for its turn comes in an hour."""
    renewal = renewer.keep(store, 3 * 3600, 100)
    renewer.release(renewal)
    return renewal
