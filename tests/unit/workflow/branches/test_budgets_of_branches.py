"""A cap on the steps of a run counts each path by itself (K)."""

from collections.abc import Callable

import pytest

from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    branch_id,
)


class Fork(ParallelEvent):
    pass


class Inner(ParallelEvent):
    pass


class Count(Event):
    left: int


class Nest(Event):
    left: int


class Wait(Event):
    pass


def count(event: Count, state: WorkflowState) -> Count | StopEvent:
    """So many steps as its event says."""
    state["steps"] = state.get("steps", 0) + 1
    return Count(left=event.left - 1) if event.left > 1 else StopEvent(state["steps"])


def nest(event: Nest, state: WorkflowState) -> Inner:
    return Inner({"deep": Count(left=event.left), "flat": Count(left=1)})


def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


@pytest.fixture(params=[SequentialBranchRunner(), ConcurrentBranchRunner()], ids=["sequential", "concurrent"])
def branching(request, define) -> Callable[..., Workflow]:
    """Return what makes a workflow whose fork opens the given branches, with each runner."""

    def make(branches: dict[str, Event], **options) -> Workflow:
        def fork(event: StartEvent, state: WorkflowState) -> Fork:
            return Fork(branches)

        return define(fork, count, nest, inner_join, join, branch_runner=request.param, **options)

    return make


def test_c200_each_branch_has_the_whole_budget(branching, run) -> None:
    definition = branching({"a": Count(left=4), "b": Count(left=4)}, max_steps=4)
    assert run(definition).execution.result == {"a": 4, "b": 4}


def test_c200_one_step_more_names_the_branch_and_raising_the_budget_continues_it(branching, run) -> None:
    branches = {"fits": Count(left=4), "too long": Count(left=5)}
    with pytest.raises(WorkflowError, match="branch 'too long' of the run exceeded its budget of 4 steps"):
        run(branching(branches, max_steps=4))
    assert branching({}).inspect().status is WorkflowStatus.FAILED
    assert run(branching(branches, max_steps=5)).execution.result == {"fits": 4, "too long": 5}


def test_c201_a_nested_branch_has_a_budget_of_its_own(branching, run) -> None:
    assert run(branching({"a": Nest(left=4)}, max_steps=4)).execution.result == {"a": {"deep": 4, "flat": 1}}


def test_c201_a_nested_branch_that_is_too_long_is_named(branching, run) -> None:
    with pytest.raises(WorkflowError, match="branch 'deep' of the run exceeded its budget of 4 steps"):
        run(branching({"a": Nest(left=5)}, max_steps=4))


def test_the_main_path_counts_a_fork_as_one_step(branching, run) -> None:
    with pytest.raises(WorkflowError, match="the run exceeded its budget of 1 steps"):
        run(branching({"a": Count(left=1)}, max_steps=1))


def test_c199_replayed_steps_of_a_branch_count_and_a_pause_does_not_reset_them(define, run) -> None:
    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Wait(), "b": Wait()})

    def wait(event: Wait, state: WorkflowState) -> Count:
        return Count(left=await_event(branch_id() or ""))

    definition = define(fork, wait, count, join, max_steps=3)
    run(definition)
    assert run(definition, ExecutionRequest.signal("a", 2)).interrupt_request.awaited_event == "b"
    with pytest.raises(WorkflowError, match="branch 'b' of the run exceeded its budget of 3 steps"):
        run(definition, ExecutionRequest.signal("b", 3))


def test_a_branch_at_the_end_of_its_budget_does_not_fail_a_run_that_another_one_has_paused(
    concurrent, run, gates, until
) -> None:
    """The pause comes first: the answer is asked for, and the budget may be raised until then."""

    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Wait(), "b": Count(left=2)})

    def wait(event: Wait, state: WorkflowState) -> StopEvent:
        gates.wait("b runs")
        return StopEvent(await_event("a"))

    def slow(event: Count, state: WorkflowState) -> Count | StopEvent:
        gates.open("b runs")
        until(lambda: gates.is_open("paused") or concurrent().inspect().interrupt)
        gates.open("paused")
        return Count(left=event.left - 1) if event.left > 1 else StopEvent("counted")

    def second(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent(event.results)

    nodes = (fork, wait, slow, second)
    assert run(concurrent(*nodes, max_steps=1)).is_interrupted()
    assert run(concurrent(*nodes, max_steps=2), ExecutionRequest.signal("a", 1)).execution.result == {"a": 1, "b": "counted"}


@pytest.mark.parametrize("budget", [0, -1])
def test_c202_a_budget_below_one_is_refused_before_anything_is_written(branching, run, store, budget) -> None:
    with pytest.raises(WorkflowError, match="max_steps"):
        run(branching({"a": Count(left=1)}, max_steps=budget))
    assert store.calls == []


def test_c202_without_a_budget_a_branch_may_be_long(branching, run) -> None:
    assert run(branching({"a": Count(left=60), "b": Count(left=1)}, max_steps=None)).execution.result == {"a": 60, "b": 1}
