"""Forks that come again, forks inside branches, and their recovery: no two steps ever meet (J)."""

from typing import Any

import pytest

from tests.unit.workflow.branches.sides import After, Fork, Left, Right, fork, join, left, right
from workflow import (
    ConcurrentBranchRunner,
    ExecutionRequest,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    WorkflowState,
    WorkflowStatus,
    branch_id,
    idempotency_key,
)


class Inner(ParallelEvent):
    pass


class Round(ParallelEvent):
    number: int


@pytest.fixture(params=[SequentialBranchRunner(), ConcurrentBranchRunner(), ConcurrentBranchRunner(limit=1)], ids=repr)
def define(request, define):
    """Return `define` with each runner."""
    return lambda *nodes, **options: define(*nodes, **{"branch_runner": request.param, **options})


# --- forks again and again --------------------------------------------------------------------------------------------------


def test_c172_a_fork_that_comes_again_runs_its_branches_again_and_forgets_their_results(define, run) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Round:
        return Round({"a": Left(), "b": Left()}, number=0)

    def work(event: Left, state: WorkflowState) -> StopEvent:
        return StopEvent(idempotency_key("work"))

    def again(event: Round, state: WorkflowState) -> Round | StopEvent:
        state["all"] = [*state.get("all", []), *event.results.values()]
        names = ("a", "b") if event.number < 2 else ("b",)
        return Round({name: Left() for name in names}, number=event.number + 1) if event.number < 3 else StopEvent(state["all"])

    keys = run(define(begin, work, again)).execution.result
    assert len(keys) == len(set(keys)) == 7


def test_one_fork_object_that_a_node_returns_again_and_again_begins_each_time_without_results(define, run) -> None:
    kept = Fork({"left": Left()})

    def begin(event: StartEvent, state: WorkflowState) -> Fork:
        return kept

    def work(event: Left, state: WorkflowState) -> StopEvent:
        return StopEvent(idempotency_key("work"))

    def again(event: Fork, state: WorkflowState) -> Fork | StopEvent:
        state["all"] = [*state.get("all", []), event.get_result("left")]
        event.set_result("stray", 1)
        return event if len(state["all"]) < 3 else StopEvent([state["all"], event.has_result("stray")])

    keys, stray = run(define(begin, work, again)).execution.result
    assert len(set(keys)) == 3
    assert stray
    assert kept.results == {}


def test_a_fork_that_comes_again_is_recovered_in_the_middle_without_the_results_of_the_round_before(
    define, run, fail_once, trip
) -> None:
    ran: list[tuple[int, str | None]] = []

    def begin(event: StartEvent, state: WorkflowState) -> Round:
        return Round({"a": Left(), "b": Left()}, number=0)

    def work(event: Left, state: WorkflowState) -> StopEvent:
        if (event.number, branch_id()) == (1, "b"):
            fail_once()
        ran.append((event.number, branch_id()))
        return StopEvent([event.number, branch_id()])

    def again(event: Round, state: WorkflowState) -> Round | StopEvent:
        state["all"] = [*state.get("all", []), event.results]
        following = Left(number=event.number + 1)
        return Round({"a": following, "b": following}, number=event.number + 1) if event.number < 2 else StopEvent(state["all"])

    with pytest.raises(trip):
        run(define(begin, work, again))
    assert run(define(begin, work, again)).execution.result == [{"a": [n, "a"], "b": [n, "b"]} for n in range(3)]
    assert sorted(ran) == [(n, name) for n in range(3) for name in "ab"]


def test_a_run_may_start_with_a_fork(define, run, fail_once, trip) -> None:
    def work(event: Left, state: WorkflowState) -> StopEvent:
        state["count"] += 1
        return StopEvent(state["count"])

    def look(event: Fork, state: WorkflowState) -> StopEvent:
        fail_once()
        return StopEvent([event.results, state["count"]])

    def definition():
        return define(work, look, state=WorkflowState(count=1), start_event=Fork({"a": Left(), "b": Left()}))

    with pytest.raises(trip):
        run(definition())
    assert run(definition()).execution.result == [{"a": 2, "b": 2}, 1]


# --- forks inside branches --------------------------------------------------------------------------------------------------


def test_c174_an_inner_branch_starts_from_the_state_of_its_outer_branch(define, run) -> None:
    def nest(event: Left, state: WorkflowState) -> Inner:
        state["seen"].append(branch_id())
        return Inner({"left": Right(), "right": Right()})

    def innermost(event: Right, state: WorkflowState) -> StopEvent:
        state["seen"].append(branch_id())
        return StopEvent(state["seen"])

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent([branch_id(), state["seen"], event.results])

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        state["seen"] = ["main"]
        return Fork({"left": Left(), "outer": Left()})

    result = run(define(split, nest, innermost, inner_join, join)).execution.result
    for name in ("left", "outer"):
        inner = {each: ["main", name, each] for each in ("left", "right")}
        assert result["results"][name] == [name, ["main", name], inner]
    assert result["state"] == {"seen": ["main"]}


def test_a_branch_may_begin_with_a_fork(define, run) -> None:
    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({name: Inner({"a": Right(), "b": Right()}) for name in ("a", "b")})

    def work(event: Right, state: WorkflowState) -> StopEvent:
        return StopEvent(idempotency_key("work"))

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(list(event.results.values()))

    results = run(define(split, work, inner_join, join)).execution.result["results"]
    assert len({key for keys in results.values() for key in keys}) == 4


def test_steps_never_collide_however_forks_loop_nest_and_share_names(define, run) -> None:
    """Two rounds in the main path, two in each branch, equal names on every level: each inner node runs as its own step."""

    def begin(event: StartEvent, state: WorkflowState) -> Round:
        return Round({"x": Left(), "y": Left()}, number=0)

    def nest(event: Left, state: WorkflowState) -> Inner:
        state["round"] = event.number
        return Inner({"x": Right(), "y": Right()})

    def work(event: Right, state: WorkflowState) -> StopEvent:
        return StopEvent(idempotency_key("work"))

    def inner_join(event: Inner, state: WorkflowState) -> Left | StopEvent:
        state["keys"] = [*state.get("keys", []), *event.results.values()]
        return Left(number=1) if state["round"] == 0 else StopEvent(state["keys"])

    def again(event: Round, state: WorkflowState) -> Round | StopEvent:
        state["all"] = [*state.get("all", []), *(key for keys in event.results.values() for key in keys)]
        return Round({"x": Left(), "y": Left()}, number=1) if event.number == 0 else StopEvent(state["all"])

    keys = run(define(begin, nest, work, inner_join, again)).execution.result
    assert len(keys) == len(set(keys)) == 16


def test_c176_after_a_failure_in_an_inner_branch_nothing_that_was_done_is_done_again(define, run, fail_once, trip) -> None:
    ran: list[Any] = []

    def nest(event: Left, state: WorkflowState) -> Inner:
        ran.append("nest")
        return Inner({"good": Right(), "bad": After()})

    def good(event: Right, state: WorkflowState) -> StopEvent:
        ran.append(branch_id())
        return StopEvent(1)

    def bad(event: After, state: WorkflowState) -> StopEvent:
        fail_once()
        ran.append("bad")
        return StopEvent(2)

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(event.results)

    nodes = (fork, nest, good, bad, inner_join, join)
    with pytest.raises(trip):
        run(define(*nodes))
    assert define().inspect().status is WorkflowStatus.FAILED
    assert run(define(*nodes)).execution.result["results"] == {"left": {"good": 1, "bad": 2}, "right": 1}
    assert sorted(ran) == ["bad", "good", "nest", "right"]


def test_a_fork_node_that_is_recovered_forks_once(define, run, fail_once, trip) -> None:
    ran: list[str] = []

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        state["seen"] = ["fork"]
        fail_once()
        ran.append("fork")
        return Fork({"left": Left(), "right": Right()})

    with pytest.raises(trip):
        run(define(split, left, right, join))
    run(define(split, left, right, join))
    assert ran == ["fork"]


def test_a_retained_run_keeps_the_outcome_of_its_join(define, run) -> None:
    definition = define(fork, left, right, join, retain_completion=True)
    first = run(definition).execution
    again = run(definition, ExecutionRequest.resume()).execution
    assert again.result == first.result
    assert again.status is WorkflowStatus.COMPLETED
