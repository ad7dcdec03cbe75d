"""Folding and branches: what an open fork needs is kept, what belongs to a closed one goes."""

from collections.abc import Callable
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    ParallelEvent,
    SequentialBranchRunner,
    StopEvent,
    Workflow,
    WorkflowState,
    await_event,
    branch_id,
    memoize,
)

FOLD_AFTER = 32
"""As often as these tests fold: the rules are the same for every number, and the runs are short."""


@pytest.fixture(autouse=True)
def folding_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.path.FOLD_AFTER", FOLD_AFTER)


class Round(ParallelEvent):
    number: int = 0


class Inner(ParallelEvent):
    pass


class Begin(Event):
    number: int = 0


class Work(Event):
    number: int = 0


class Deep(Event):
    pass


class HaltError(Exception):
    """Raised by a node where the test wants to look at the records."""


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: this is not a matter of the store, and a fold takes many steps."""
    return InMemoryPersistence()


@pytest.fixture(params=[SequentialBranchRunner(), ConcurrentBranchRunner()], ids=["sequential", "concurrent"])
def rounds(request, define) -> Callable[..., Workflow]:
    """Return what makes a workflow of so many rounds of two branches, which stops once in the join of a given round."""
    stopped: set[int] = set()

    def make(last: int, stops_in: int = -1, **options: Any) -> Workflow:
        def work(event: Work, state: WorkflowState) -> StopEvent:
            return StopEvent(memoize("memo", lambda: [event.number, branch_id()]))

        def again(event: Round, state: WorkflowState) -> Round | StopEvent:
            if event.number == stops_in and stops_in not in stopped:
                stopped.add(stops_in)
                raise HaltError
            assert event.results == {name: [event.number, name] for name in ("a", "b")}
            state["count"] = state.get("count", 0) + 1
            following = event.number + 1
            return round_of(following) if following < last else StopEvent(state["count"])

        again.__qualname__, work.__qualname__ = "again", "work"
        return define(work, again, start_event=round_of(0), branch_runner=request.param, **options)

    return make


def round_of(number: int) -> Round:
    return Round({name: Work(number=number) for name in ("a", "b")}, number=number)


def keys(store: Any) -> list[str]:
    """The records of steps and memos, without the run id."""
    return [key.partition("/")[2] for key in store.load("w") if not key.startswith("__") and not key.endswith("__failure")]


@pytest.mark.parametrize("stops_in", [1, FOLD_AFTER - 1, FOLD_AFTER, FOLD_AFTER + 1, 2 * FOLD_AFTER])
def test_a_run_that_forks_in_each_step_folds_and_is_recovered_at_any_place(rounds, store, stops_in) -> None:
    with pytest.raises(HaltError):
        rounds(2 * FOLD_AFTER + 3, stops_in).run()
    open_branches = {f"{key.rpartition('/')[2]}" for key in keys(store)}
    assert {"work-0", "work-0::memo"} <= open_branches
    ended = rounds(2 * FOLD_AFTER + 3).run(ExecutionRequest.resume()).execution
    assert ended.result == 2 * FOLD_AFTER + 3


def test_what_is_left_of_closed_forks_goes_in_the_writes_that_follow(rounds, store) -> None:
    """Two branches with a memo each are four records a round; one write deletes 256 at most, so a few writes take them all."""
    with pytest.raises(HaltError):
        rounds(FOLD_AFTER + 20, FOLD_AFTER + 10).run()
    # The base, ten rounds of their own with five records each, and the branches of the round that is open.
    assert len(keys(store)) <= 1 + 10 * 5 + 4


def test_leftovers_of_a_dead_process_go_with_the_next_fold(rounds, store) -> None:
    """The process that folds dies before it has deleted all; of what it left only that of its own path is known at first."""
    last = 2 * FOLD_AFTER + 12
    with pytest.raises(HaltError):
        rounds(last, FOLD_AFTER).run()
    assert len(keys(store)) > 2 * FOLD_AFTER
    with pytest.raises(HaltError):
        rounds(last, last - 2).run()
    assert len(keys(store)) < 2 * FOLD_AFTER
    assert rounds(last).run().execution.result == last


@pytest.fixture
def long_branch(define) -> Callable[..., Workflow]:
    """Return what makes a workflow with a branch of many rounds of an inner fork, beside one that waits."""

    def make(last: int, **options: Any) -> Workflow:
        def begin(event: Begin, state: WorkflowState) -> Round:
            return Round({"long": Work(), "waits": Deep()})

        def work(event: Work, state: WorkflowState) -> Inner:
            state["number"] = event.number
            return Inner({name: Deep() for name in ("x", "y")})

        def deep(event: Deep, state: WorkflowState) -> StopEvent:
            return StopEvent(await_event("go") if branch_id() == "waits" else memoize("memo", lambda: branch_id()))

        def inner_join(event: Inner, state: WorkflowState) -> Work | StopEvent:
            state["seen"] = state.get("seen", 0) + len(event.results)
            following = state["number"] + 1
            return Work(number=following) if following < last else StopEvent(state["seen"])

        def join(event: Round, state: WorkflowState) -> StopEvent:
            return StopEvent(event.results)

        return define(begin, work, deep, inner_join, join, start_event=Begin(), **options)

    return make


@pytest.mark.parametrize("last", [FOLD_AFTER // 2, FOLD_AFTER // 2 + 1, FOLD_AFTER])
def test_a_branch_folds_its_own_steps_and_those_of_its_inner_forks(long_branch, run, store, last) -> None:
    """Its siblings, and the fork around it, keep what they have: the run waits, and is answered."""
    definition = long_branch(last)
    assert run(definition).is_interrupted()
    assert len(keys(store)) < 3 * FOLD_AFTER
    if last == FOLD_AFTER:
        # The last steps of two folds have gone by: nothing but leftovers of the second is there.
        assert sum(key.endswith("::memo") for key in keys(store)) <= FOLD_AFTER + 2
    result = run(definition, ExecutionRequest.signal("go", "went")).execution.result
    assert result == {"long": 2 * last, "waits": "went"}
