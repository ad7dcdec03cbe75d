"""Waits in branches: one is shown at a time, the others queue behind it in the order in which they came (J)."""

import datetime as dt
import json
from collections import Counter
from typing import Any

import pytest

from tests.unit.workflow.branches.asking import Ask, Fork, Other, Then, answer, fork, join, then
from workflow import (
    ExecutionRequest,
    ParallelEvent,
    RefusalReason,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    WorkflowRefusedError,
    WorkflowState,
    amemoize,
    await_event,
    branch_id,
    memoize,
    sleep_until,
)


class Inner(ParallelEvent):
    pass


# --- one at a time ----------------------------------------------------------------------------------------------------------


def test_c177_a_wait_keeps_later_branches_of_a_sequential_fork_from_starting(define, run) -> None:
    ran: list[str | None] = []

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        ran.append(branch_id())
        return StopEvent(await_event(branch_id() or ""))

    definition = define(fork, ask, join)
    assert run(definition).is_interrupted()
    assert ran == ["a"]
    assert run(definition, answer("a")).is_interrupted()
    assert ran == ["a", "a", "b"]
    assert definition.inspect().deferred_interrupts == 0
    run(definition, answer("b"))
    assert run(definition, answer("c")).execution.result == {name: f"to {name}" for name in "abc"}
    assert ran == ["a", "a", "b", "b", "c", "c"]


def test_c180_while_one_waits_a_running_node_finishes_and_the_next_does_not_begin(concurrent, run, gates, until) -> None:
    ran: list[str] = []

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Ask(), "b": Other()})

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        gates.wait("b runs")
        return StopEvent(await_event("a"))

    def work(event: Other, state: WorkflowState) -> Then:
        gates.open("b runs")
        until(lambda: concurrent().inspect().interrupt)
        ran.append(memoize("memo", lambda: "work"))
        return Then(answer="b")

    def end(event: Then, state: WorkflowState) -> StopEvent:
        ran.append("end")
        return StopEvent(event.answer)

    definition = concurrent(split, ask, work, end, join)
    assert run(definition).is_interrupted()
    assert ran == ["work"]
    assert run(definition, answer("a")).execution.result == {"a": "to a", "b": "b"}
    assert ran == ["work", "end"]


def test_c184_waits_are_answered_in_the_order_in_which_they_came_and_nobody_goes_on_before(three, run) -> None:
    """The answered branch's next node runs only when no other request is left."""
    ran: list[Any] = []
    definition = three()
    for number, name in enumerate("abc", 1):
        state = run(definition, answer(chr(ord(name) - 1)) if number > 1 else None)
        ran.append((state.execution.attempt, state.interrupt_request.id, state.interrupt_request.awaited_event))
        assert definition.inspect().deferred_interrupts == 3 - number
    assert ran == [(1, 1, "a"), (2, 2, "b"), (3, 3, "c")]
    last = run(definition, answer("c")).execution
    assert (last.attempt, last.result) == (4, {name: [name, f"to {name}"] for name in "abc"})


def test_an_answered_branch_pauses_after_its_node_while_another_request_is_open(concurrent, run, queue) -> None:
    ran: list[str] = []

    def ask(event: Ask, state: WorkflowState) -> Then:
        queue(branch_id() or "")
        return Then(answer=await_event(branch_id() or ""))

    def end(event: Then, state: WorkflowState) -> StopEvent:
        ran.append(branch_id() or "")
        return StopEvent(event.answer)

    definition = concurrent(fork, ask, end, join)
    run(definition)
    for name in "ab":
        run(definition, answer(name))
        assert ran == []
    assert run(definition, answer("c")).execution.result == {name: f"to {name}" for name in "abc"}
    assert sorted(ran) == ["a", "b", "c"]


def test_requests_are_numbered_by_arrival_not_by_declaration(concurrent, run, gates, until) -> None:
    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        gates.open(name)
        if name != "c":
            until(lambda: concurrent().inspect().interrupt)
        for other in "ab":
            gates.wait(other)
        return StopEvent(await_event(name))

    definition = concurrent(fork, ask, join)
    assert run(definition).interrupt_request.awaited_event == "c"
    second = run(definition, answer("c")).interrupt_request
    assert second.id == 2
    third = run(definition, answer(second.awaited_event)).interrupt_request
    assert third.id == 3
    assert run(definition, answer(third.awaited_event)).execution.result == {name: f"to {name}" for name in "abc"}


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_deferred_request_cannot_be_answered(three, run, store, name) -> None:
    definition = three()
    run(definition)
    store.forget()
    for request in (answer(name), ExecutionRequest.resume(1, expected_interrupt_id=ord(name) - ord("a") + 1)):
        with pytest.raises(WorkflowRefusedError) as refused:
            run(definition, request)
        assert refused.value.reason is RefusalReason.NOT_AWAITED
    assert store.writes == []


def test_an_answer_is_fenced_by_the_interruption_that_it_was_meant_for(three, run) -> None:
    """A late second click on the first question does not answer the second."""
    definition = three()
    click = ExecutionRequest.resume("yes", expected_interrupt_id=run(definition).interrupt_request.id)
    assert run(definition, click).interrupt_request.id == 2
    with pytest.raises(WorkflowRefusedError) as refused:
        run(definition, click)
    assert refused.value.reason is RefusalReason.NOT_AWAITED
    assert definition.inspect().interrupt.id == 2


def test_polling_a_run_with_requests_in_line_writes_nothing(three, run, store) -> None:
    definition = three()
    run(definition)
    store.forget()
    assert run(definition, ExecutionRequest.resume()).interrupt_request.id == 1
    assert store.writes == []
    assert definition.inspect().deferred_interrupts == 2


def test_the_next_request_comes_up_in_the_write_of_the_answered_step(three, run, store) -> None:
    definition = three()
    run(definition)
    store.forget()
    run(definition, answer("a"))
    claim, step, settled = (json.loads(call.records["__control"]) for call in store.writes)
    assert (claim["interrupt"]["id"], claim["interrupt"]["input"]["payload"], len(claim["pendingSteps"])) == (1, "to a", 2)
    assert (step["interrupt"]["id"], step["interrupt"]["input"], len(step["pendingSteps"])) == (2, None, 1)
    assert (settled["interrupt"]["id"], settled["status"]) == (2, "suspended")
    (written,) = [key for key in store.writes[1].records if not key.startswith("__") and "::" not in key]
    assert written.endswith("ask-0")


# --- deadlines --------------------------------------------------------------------------------------------------------------


def test_c185_a_deferred_deadline_counts_only_once_its_request_is_the_current_one(concurrent, run, clock, queue) -> None:
    deadline = clock.now() + dt.timedelta(seconds=10)

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        queue(name)
        return StopEvent(await_event(name, expires_at=deadline if name == "b" else None))

    definition = concurrent(fork, ask, join)
    run(definition)
    clock.advance(60)
    assert run(definition, ExecutionRequest.resume()).interrupt_request.awaited_event == "a"
    shown = run(definition, answer("a")).interrupt_request
    assert (shown.id, shown.deadline) == (2, deadline)
    assert run(definition, ExecutionRequest.resume()).interrupt_request.awaited_event == "c"
    assert run(definition, answer("c")).execution.result == {"a": "to a", "b": None, "c": "to c"}


def test_a_deferred_sleep_that_is_over_ends_with_the_next_poll_and_not_before(concurrent, run, clock, gates, until) -> None:
    wakes = clock.now() + dt.timedelta(seconds=10)

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Ask(), "b": Other()})

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        gates.wait("the other runs")
        return StopEvent(await_event("a"))

    def rest(event: Other, state: WorkflowState) -> StopEvent:
        gates.open("the other runs")
        until(lambda: gates.is_open("answered") or concurrent().inspect().interrupt)
        sleep_until(wakes)
        return StopEvent("rested")

    definition = concurrent(split, ask, rest, join)
    assert run(definition).interrupt_request.id == 1
    gates.open("answered")
    clock.advance(60)
    state = run(definition, answer("a"))
    assert (state.interrupt_request.id, state.interrupt_request.deadline) == (2, wakes)
    assert run(definition, ExecutionRequest.resume()).execution.result == {"a": "to a", "b": "rested"}


# --- waiting again ----------------------------------------------------------------------------------------------------------


def test_c186_a_resumed_node_that_waits_again_queues_behind_those_that_wait_already(concurrent, run, queue) -> None:
    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        queue(name)
        first = await_event(name)
        return StopEvent([first, await_event(f"{name} again") if name == "a" else None])

    definition = concurrent(fork, ask, join)
    seen = [run(definition).interrupt_request]
    for _ in range(3):
        seen.append(run(definition, answer(seen[-1].awaited_event)).interrupt_request)
    assert [(request.id, request.awaited_event) for request in seen] == [(1, "a"), (2, "b"), (3, "c"), (4, "a again")]
    result = run(definition, answer("a again")).execution.result
    assert result == {"a": ["to a", "to a again"], "b": ["to b", None], "c": ["to c", None]}


def test_several_nodes_may_wait_again_and_again_in_turns(concurrent, run, queue) -> None:
    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        queue(name)
        return StopEvent([await_event(f"{name}{number}") for number in range(3)])

    definition = concurrent(fork, ask, join)
    state, order = run(definition), []
    while state.is_interrupted():
        order.append(state.interrupt_request.awaited_event)
        state = run(definition, answer(order[-1]))
    assert order == ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]
    assert state.execution.attempt == 10
    assert state.execution.result == {name: [f"to {name}{number}" for number in range(3)] for name in "abc"}


def test_c193_a_memo_before_a_wait_in_a_branch_is_made_once(concurrent, run, queue) -> None:
    made: Counter[str] = Counter()

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        memo = memoize("draft", lambda: made.update([name]) or f"draft of {name}")
        queue(name)
        return StopEvent([memo, await_event(name)])

    definition = concurrent(fork, ask, join)
    run(definition)
    for name in "ab":
        run(definition, answer(name))
    result = run(definition, answer("c")).execution.result
    assert result == {name: [f"draft of {name}", f"to {name}"] for name in "abc"}
    assert made == {"a": 1, "b": 1, "c": 1}


def test_a_wait_inside_a_memo_of_a_branch_is_deferred_and_answered(concurrent, run, queue) -> None:
    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        queue(name)
        inside = memoize("inside", lambda: await_event(name))
        return StopEvent([inside, await_event(f"{name} after")])

    definition = concurrent(fork, ask, join)
    state = run(definition)
    while state.is_interrupted():
        state = run(definition, answer(state.interrupt_request.awaited_event))
    assert state.execution.result == {name: [f"to {name}", f"to {name} after"] for name in "abc"}


def test_async_nodes_wait_memoize_and_are_deferred_like_plain_ones(concurrent, run, gates) -> None:
    made: Counter[str] = Counter()

    async def ask(event: Ask, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""

        async def draft() -> str:
            made[name] += 1
            return f"draft of {name}"

        memo = await amemoize("draft", draft)
        gates.open(f"{name} runs")
        for other in "abc":
            await gates.passed(f"{other} runs")
        return StopEvent([memo, await_event(name)])

    definition = concurrent(fork, ask, join)
    state = run(definition)
    assert definition.inspect().deferred_interrupts == 2
    while state.is_interrupted():
        state = run(definition, answer(state.interrupt_request.awaited_event))
    assert state.execution.result == {name: [f"draft of {name}", f"to {name}"] for name in "abc"}
    assert made == {"a": 1, "b": 1, "c": 1}


def test_waits_in_nested_branches_queue_with_those_outside(concurrent, run, gates) -> None:
    """Four waits on two levels: two inner branches of each of two outer ones."""

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"x": Other(), "y": Other()})

    def nest(event: Other, state: WorkflowState) -> Inner:
        state["outer"] = branch_id()
        return Inner({"x": Ask(), "y": Ask()})

    def ask(event: Ask, state: WorkflowState) -> Then:
        name = f"{state['outer']}{branch_id()}"
        gates.open(name)
        for other in ("xx", "xy", "yx", "yy"):
            gates.wait(other)
        return Then(answer=await_event(name))

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(event.results)

    definition = concurrent(split, nest, ask, then, inner_join, join)
    state, ids = run(definition), []
    while state.is_interrupted():
        ids.append((state.interrupt_request.id, definition.inspect().deferred_interrupts))
        state = run(definition, answer(state.interrupt_request.awaited_event))
    assert ids == [(1, 3), (2, 2), (3, 1), (4, 0)]
    assert state.execution.result == {a: {b: [b, f"to {a}{b}"] for b in "xy"} for a in "xy"}


def test_a_wait_that_the_concurrent_runner_deferred_is_answered_under_the_sequential_one(three, run) -> None:
    run(three())
    definition = three(branch_runner=SequentialBranchRunner())
    for name in "ab":
        assert run(definition, answer(name)).is_interrupted()
    assert run(definition, answer("c")).execution.result == {name: [name, f"to {name}"] for name in "abc"}
