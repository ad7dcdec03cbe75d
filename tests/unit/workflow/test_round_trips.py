"""What a run costs: store operations, counted."""

import json
from typing import Any

import pytest

from workflow import Event, ExecutionRequest, StartEvent, StopEvent, WorkflowState, amemoize, await_event, memoize


class Step(Event):
    number: int


def begin(event: StartEvent, state: WorkflowState) -> Step:
    return Step(number=1)


@pytest.fixture
def loop(define):
    """Return what makes a workflow of `steps` steps, with so many memos in each but the first."""

    def make(steps: int, memos: int = 0, **options: Any):
        def work(event: Step, state: WorkflowState) -> Step | StopEvent:
            for number in range(memos):
                memoize(f"memo {number}", lambda number=number: number)
            state["last"] = event.number
            return Step(number=event.number + 1) if event.number < steps - 1 else StopEvent()

        return define(begin, work, **options)

    return make


@pytest.mark.parametrize("steps", [2, 3, 10])
@pytest.mark.parametrize("options", [{}, {"lease_timeout": 60}, {"lease_timeout": 60, "retain_completion": True}])
def test_a_fresh_run_of_n_steps_makes_n_plus_one_writes_and_no_read(loop, store, steps, options) -> None:
    """C093, C094 and D1: the lease costs nothing of its own, and the last step is the write that settles the run."""
    loop(steps, **options).run()
    assert len(store.calls) == steps + 1
    assert store.reads == []


def test_each_memo_costs_one_write_more(loop, store) -> None:
    loop(4, memos=2).run()
    assert len(store.calls) == 4 + 1 + 3 * 2
    assert store.reads == []


def test_an_async_memo_costs_the_same(define, store) -> None:
    async def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        async def one() -> int:
            return 1

        return StopEvent([await amemoize("a", one), await amemoize("a", one)])

    assert define(work).run().execution.result == [1, 1]
    assert store.names == ["initialize_if_absent", "write_if_unchanged", "delete_if_unchanged"]


def test_igniting_is_one_write(loop, store) -> None:
    loop(2).ignite()
    assert store.names == ["initialize_if_absent"]


def test_continuing_is_one_read_and_one_claim(define, store) -> None:
    def ask(event: Step, state: WorkflowState) -> StopEvent:
        await_event("go")
        return StopEvent()

    define(begin, ask).run()
    store.forget()
    define(begin, ask).run(ExecutionRequest.resume(1))
    assert store.names == ["load", "write_if_unchanged", "delete_if_unchanged"]


def test_taking_a_pending_run_over_is_one_read_and_one_claim(loop, store) -> None:
    loop(2).ignite()
    store.forget()
    loop(2).run(ExecutionRequest.resume())
    assert store.names == ["load", "write_if_unchanged", "write_if_unchanged", "delete_if_unchanged"]


def test_a_suspension_is_one_write(define, store) -> None:
    def ask(event: Step, state: WorkflowState) -> StopEvent:
        await_event("go")
        return StopEvent()

    define(begin, ask).run()
    assert store.names == ["initialize_if_absent", "write_if_unchanged", "write_if_unchanged"]


def test_c094_each_step_moves_the_lease_in_its_own_write(define, store, clock) -> None:
    def work(event: Step, state: WorkflowState) -> Step | StopEvent:
        clock.advance(10)
        return Step(number=event.number + 1) if event.number < 3 else StopEvent()

    began = int(clock.now().timestamp())
    define(begin, work, lease_timeout=60).run()
    leases = [json.loads(call.records["__control"])["lease"] - began for call in store.writes if call.records]
    assert leases == [60, 60, 70, 80]


def test_c093_without_a_lease_control_never_holds_one(loop, store) -> None:
    loop(3).run()
    assert not any("lease" in json.loads(call.records["__control"]) for call in store.writes if call.records)


def test_a_step_writes_what_it_changed_and_no_more(define, store) -> None:
    def first(event: StartEvent, state: WorkflowState) -> Step:
        state["large"] = "x" * 10_000
        return Step(number=1)

    def later(event: Step, state: WorkflowState) -> Step | StopEvent:
        state["small"] = event.number
        return Step(number=event.number + 1) if event.number < 4 else StopEvent()

    define(first, later).run()
    sizes = [sum(map(len, call.records.values())) for call in store.writes if call.records]
    assert sizes[1] > 10_000
    assert max(sizes[2:]) < 1_000


def test_every_write_of_a_run_changes_the_bytes_of_the_fence(loop, store) -> None:
    loop(4, memos=1, retain_completion=True).run()
    fences = [call.records["__control"] for call in store.writes]
    assert len(set(fences)) == len(fences)
