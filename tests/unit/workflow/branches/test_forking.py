"""A fork: named branches on copies of the state, their results, and the join (J)."""

from typing import Any

import pytest
from pydantic import Field, ValidationError

from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    Middleware,
    ParallelEvent,
    RefusalReason,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    branch_id,
    idempotency_key,
)


class Fork(ParallelEvent):
    pass


class Inner(ParallelEvent):
    pass


class Round(ParallelEvent):
    number: int


class Left(Event):
    number: int = 0


class Right(Event):
    items: list[int] = Field(default_factory=list)


class After(Event):
    pass


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    state["seen"] = ["fork"]
    return Fork({"left": Left(), "right": Right()})


def left(event: Left, state: WorkflowState) -> StopEvent:
    state["seen"].append("left")
    return StopEvent(state["seen"])


def right(event: Right, state: WorkflowState) -> StopEvent:
    state["seen"].append("right")
    state["mine"] = True
    return StopEvent(state["seen"])


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent({"results": event.results, "state": state.all(), "branch": branch_id()})


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
