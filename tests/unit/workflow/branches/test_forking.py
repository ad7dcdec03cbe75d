"""A fork: named branches on copies of the state, their results, and the join (J)."""

from typing import Any

import pytest
from pydantic import Field, ValidationError

from tests.unit.workflow.branches.sides import After, Fork, Left, Right, fork, join, left, right
from workflow import (
    ConcurrentBranchRunner,
    Event,
    Middleware,
    RefusalReason,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    branch_id,
)


@pytest.fixture(params=[SequentialBranchRunner(), ConcurrentBranchRunner(), ConcurrentBranchRunner(limit=1)], ids=repr)
def define(request, define):
    """Return `define` with each runner."""
    return lambda *nodes, **options: define(*nodes, **{"branch_runner": request.param, **options})


# --- results and state ------------------------------------------------------------------------------------------------------


def test_c165_c168_results_come_by_name_and_the_join_gets_the_state_of_the_fork(define, run) -> None:
    result = run(define(fork, left, right, join)).execution.result
    assert result["results"] == {"left": ["fork", "left"], "right": ["fork", "right"]}
    assert result["state"] == {"seen": ["fork"]}


def test_results_stand_in_the_order_in_which_the_branches_were_declared(define, run) -> None:
    assert list(run(define(fork, left, right, join)).execution.result["results"]) == ["left", "right"]


@pytest.mark.parametrize("branches", [[Left()], {1: Left()}, {"": Left()}, {}, {"a": "no event"}, {None: Left()}])
def test_c166_a_branch_needs_a_name_and_an_event(branches) -> None:
    with pytest.raises(ValidationError):
        Fork(branches)


@pytest.mark.parametrize("name", [" ", "ärztin 東京 🌍", "a/b::c", "x-1", "\x00", "__base", "n" * 500])
def test_c166_any_other_name_will_do(define, run, name) -> None:
    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({name: Left(), name + "2": Left()})

    def tell(event: Left, state: WorkflowState) -> StopEvent:
        return StopEvent(branch_id())

    assert run(define(split, tell, join)).execution.result["results"] == {name: name, name + "2": name + "2"}


def test_c169_a_node_knows_its_branch_and_outside_there_is_none(define, run) -> None:
    def split(event: StartEvent, state: WorkflowState) -> Fork:
        state["outside"] = branch_id()
        return Fork({"left": Left(), "right": Right()})

    def inside_left(event: Left, state: WorkflowState) -> StopEvent:
        return StopEvent(branch_id())

    def inside_right(event: Right, state: WorkflowState) -> StopEvent:
        return StopEvent(branch_id())

    result = run(define(split, inside_left, inside_right, join)).execution.result
    assert result == {"results": {"left": "left", "right": "right"}, "state": {"outside": None}, "branch": None}


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_a_result_that_is_nothing_is_a_result(define, run, value) -> None:
    def empty(event: Left, state: WorkflowState) -> StopEvent:
        return StopEvent(value)

    def other(event: Right, state: WorkflowState) -> StopEvent:
        return StopEvent()

    def look(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent([event.has_result("left"), event.get_result("left"), event.has_result("none")])

    assert run(define(fork, empty, other, look)).execution.result == [True, value, False]


def test_a_result_that_is_missing_is_an_error_that_names_those_there_are(define, run) -> None:
    def look(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent(event.get_result("middle"))

    with pytest.raises(WorkflowError, match="'middle' has no result: there are left, right"):
        run(define(fork, left, right, look))


def test_a_result_may_be_overwritten(define, run) -> None:
    def look(event: Fork, state: WorkflowState) -> StopEvent:
        event.set_result("left", "mine")
        return StopEvent(event.results)

    assert run(define(fork, left, right, look)).execution.result == {"left": "mine", "right": ["fork", "right"]}


def test_results_are_not_recorded_with_the_fork_and_are_found_again_when_the_join_is_recovered(define, run, fail_once, trip):
    def look(event: Fork, state: WorkflowState) -> StopEvent:
        fail_once()
        return StopEvent(event.results)

    with pytest.raises(trip):
        run(define(fork, left, right, look))
    assert run(define(fork, left, right, look)).execution.result == {"left": ["fork", "left"], "right": ["fork", "right"]}


def test_c170_a_branch_may_have_many_steps_and_a_loop(define, run) -> None:
    def count(event: Left, state: WorkflowState) -> Left | StopEvent:
        state["seen"].append(event.number)
        return Left(number=event.number + 1) if event.number < 5 else StopEvent(state["seen"])

    result = run(define(fork, count, right, join)).execution.result["results"]
    assert result == {"left": ["fork", 0, 1, 2, 3, 4, 5], "right": ["fork", "right"]}


def test_c171_without_a_join_the_run_fails_after_its_branches(define, run, store) -> None:
    done: list[str] = []

    def one(event: Left, state: WorkflowState) -> StopEvent:
        done.append("left")
        return StopEvent()

    def two(event: Right, state: WorkflowState) -> StopEvent:
        done.append("right")
        return StopEvent()

    with pytest.raises(WorkflowError, match="no node handles Fork"):
        run(define(fork, one, two))
    assert sorted(done) == ["left", "right"]
    with pytest.raises(WorkflowRefusedError) as refused:
        run(define(fork, one, two))
    assert refused.value.reason is RefusalReason.INCOMPATIBLE_VERSION
    assert run(define(fork, one, two, join)).execution.status is WorkflowStatus.COMPLETED
    assert len(done) == 2


def test_a_branch_without_a_node_fails_the_run_and_can_be_mended(define, run) -> None:
    with pytest.raises(WorkflowError, match="no node handles Right"):
        run(define(fork, left, join))
    assert run(define(fork, left, right, join)).execution.result["results"]["right"] == ["fork", "right"]


def test_branches_that_begin_with_one_event_object_have_a_copy_each(define, run) -> None:
    shared = Right(items=[1])

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": shared, "b": shared, "c": shared})

    def grow(event: Right, state: WorkflowState) -> StopEvent:
        event.items.append(2)
        return StopEvent(event.items)

    result = run(define(split, grow, join)).execution.result["results"]
    assert result == {"a": [1, 2], "b": [1, 2], "c": [1, 2]}
    assert shared.items == [1]


def test_nested_values_of_the_state_belong_to_their_branch_alone(define, run) -> None:
    def split(event: StartEvent, state: WorkflowState) -> Fork:
        state["deep"] = {"list": [{"n": 0}], "set": {1}}
        return Fork({name: Left() for name in "abc"})

    def change(event: Left, state: WorkflowState) -> StopEvent:
        state["deep"]["list"][0]["n"] += 1
        state["deep"]["list"].append(branch_id())
        state["deep"]["set"].add(2)
        return StopEvent(state["deep"]["list"])

    result = run(define(split, change, join)).execution.result
    assert result["results"] == {name: [{"n": 1}, name] for name in "abc"}
    assert result["state"]["deep"] == {"list": [{"n": 0}], "set": {1}}


def test_a_typed_state_is_copied_as_such(define, run) -> None:
    class Counted(WorkflowState):
        numbers: list[int] = Field(default_factory=list)

    def split(event: StartEvent, state: Counted) -> Fork:
        state.numbers.append(1)
        return Fork({"left": Left(), "right": Left()})

    def add(event: Left, state: Counted) -> StopEvent:
        state.numbers.append(2)
        del state.numbers[0]
        return StopEvent(state.numbers)

    def look(event: Fork, state: Counted) -> StopEvent:
        return StopEvent([event.results, state.numbers])

    result = run(define(split, add, look, state=Counted())).execution.result
    assert result == [{"left": [2], "right": [2]}, [1]]


def test_a_key_that_a_branch_deletes_stays_deleted_when_it_is_replayed(define, run, fail_once, trip) -> None:
    def delete(event: Left, state: WorkflowState) -> After:
        del state["seen"]
        return After()

    def end(event: After, state: WorkflowState) -> StopEvent:
        fail_once()
        return StopEvent(state.all())

    with pytest.raises(trip):
        run(define(fork, delete, end, right, join))
    assert run(define(fork, delete, end, right, join)).execution.result["results"]["left"] == {}


def test_middleware_that_replaces_a_fork_before_its_join_keeps_the_results(define, run) -> None:
    class Fresh(Middleware):
        def before(self, node: Any, event: Event, state: Any, resources: Any) -> Event | None:
            return Fork(event.branches) if isinstance(event, Fork) else None

    result = run(define(fork, left, right, join, middleware=[Fresh()])).execution.result["results"]
    assert result == {"left": ["fork", "left"], "right": ["fork", "right"]}
