"""Waits in branches beside failures, and records of waits that are lost or damaged (J)."""

import json

import pytest

from persistence import PersistenceError
from tests.unit.workflow.branches.asking import Ask, Fork, Other, Then, answer, fork, join, then
from workflow import (
    StartEvent,
    StopEvent,
    WorkflowState,
    WorkflowStatus,
    await_event,
    branch_id,
)

# --- failures beside waits --------------------------------------------------------------------------------------------------


@pytest.fixture
def broken(concurrent, gates, until, fail_once):
    """Return a workflow in which branch `a` fails once while `b` waits, and the list of what has run."""
    ran: list[str] = []

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Other(), "b": Ask()})

    def fail(event: Other, state: WorkflowState) -> StopEvent:
        ran.append("a")
        gates.open("a runs")
        until(lambda: gates.is_open("failed") or concurrent().inspect().interrupt)
        gates.open("failed")
        fail_once()
        return StopEvent("a")

    def ask(event: Ask, state: WorkflowState) -> Then:
        ran.append("b")
        gates.wait("a runs")
        return Then(answer=await_event("b"))

    return concurrent(split, fail, ask, then, join), ran


def test_c188_a_run_that_failed_while_a_branch_waits_is_shown_waiting_and_nothing_runs(broken, run, trip) -> None:
    definition, ran = broken
    with pytest.raises(trip):
        run(definition)
    seen = definition.inspect()
    assert (seen.status, seen.interrupt.awaited_event) == (WorkflowStatus.FAILED, "b")
    ran.clear()
    state = run(definition)
    assert (state.execution.status, state.execution.attempt, state.interrupt_request.id) == (WorkflowStatus.SUSPENDED, 2, 1)
    assert ran == []
    assert run(definition, answer("b")).execution.result == {"a": "a", "b": ["b", "to b"]}


def test_c189_the_answer_recovers_a_run_that_failed_beside_the_wait_in_one_go(broken, run, trip) -> None:
    definition, ran = broken
    with pytest.raises(trip):
        run(definition)
    ended = run(definition, answer("b")).execution
    assert (ended.attempt, ended.result) == (2, {"a": "a", "b": ["b", "to b"]})
    assert sorted(ran) == ["a", "a", "b", "b"]


def test_an_answered_node_that_fails_keeps_its_answer_and_those_in_line(concurrent, run, queue, fail_once, trip) -> None:
    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        queue(name)
        got = await_event(name)
        fail_once(name)
        return StopEvent(got)

    definition = concurrent(fork, ask, join)
    state = run(definition)
    for name in "abc":
        with pytest.raises(trip):
            run(definition, answer(name))
        seen = definition.inspect()
        assert (seen.status, seen.interrupt.awaited_event, seen.input_accepted) == (WorkflowStatus.FAILED, name, True)
        state = run(definition)
    assert state.execution.result == {name: f"to {name}" for name in "abc"}


def test_c191_a_lost_record_of_a_deferred_wait_is_reported_by_its_key(three, run, store) -> None:
    definition = three()
    run(definition)
    control = json.loads(store.load("w")["__control"])
    key = f"{control['run']}/{control['pendingSteps'][0]}::__wait"
    store.inner.write_if_unchanged("w", "__control", store.load("w")["__control"], {}, [key])
    with pytest.raises(PersistenceError, match="is missing") as raised:
        run(definition, answer("a"))
    assert repr(key) in str(raised.value)
    seen = definition.inspect()
    assert (seen.status, seen.interrupt.awaited_event, seen.input_accepted) == (WorkflowStatus.FAILED, "a", True)


def test_a_corrupt_record_of_a_deferred_wait_is_reported_by_its_key(three, run, store) -> None:
    definition = three()
    run(definition)
    control = json.loads(store.load("w")["__control"])
    key = f"{control['run']}/{control['pendingSteps'][0]}::__wait"
    store.inner.write_if_unchanged("w", "__control", store.load("w")["__control"], {key: b"\xff"})
    with pytest.raises(PersistenceError) as raised:
        run(definition, answer("a"))
    assert repr(key) in str(raised.value)
