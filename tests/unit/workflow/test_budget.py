"""A cap on the steps of a run (K)."""

from typing import Any

import pytest

from workflow import Event, ExecutionRequest, StopEvent, WorkflowError, WorkflowState, WorkflowStatus, await_event


class Step(Event):
    number: int = 1


@pytest.fixture
def loop(define):
    """Return what makes a workflow of `steps` steps, which may wait in one of them."""

    def make(steps: int, waits_in: int = 0, **options: Any):
        def work(event: Step, state: WorkflowState) -> Step | StopEvent:
            state["done"] = [*state.get("done", []), event.number]
            if event.number == waits_in:
                await_event("go")
            return Step(number=event.number + 1) if event.number < steps else StopEvent(state["done"])

        return define(work, start_event=Step(), **options)

    return make


def test_exactly_the_budget_is_allowed(loop) -> None:
    assert loop(5, max_steps=5).run().execution.result == [1, 2, 3, 4, 5]


def test_one_step_more_fails_the_run_and_raising_the_budget_continues_it(loop) -> None:
    with pytest.raises(WorkflowError, match="budget of 3 steps"):
        loop(5, max_steps=3).run()
    assert loop(5).inspect().status is WorkflowStatus.FAILED
    with pytest.raises(WorkflowError, match="budget of 3 steps"):
        loop(5, max_steps=3).run()
    assert loop(5, max_steps=5).run().execution.result == [1, 2, 3, 4, 5]


def test_c199_replayed_steps_count_and_a_pause_does_not_reset_them(loop) -> None:
    definition = loop(5, waits_in=3, max_steps=4)
    assert definition.run().is_interrupted()
    with pytest.raises(WorkflowError, match="budget of 4 steps"):
        definition.run(ExecutionRequest.resume(1))


@pytest.mark.parametrize("budget", [0, -1])
def test_c202_a_budget_below_one_is_refused_before_anything_is_written(loop, store, budget) -> None:
    with pytest.raises(WorkflowError, match="max_steps"):
        loop(1, max_steps=budget).run()
    assert store.calls == []


def test_c202_none_is_no_budget(loop) -> None:
    assert len(loop(40, max_steps=None).run().execution.result) == 40
