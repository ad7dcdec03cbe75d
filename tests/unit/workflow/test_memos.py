"""Replay, and values recorded inside nodes (H)."""

from typing import Any

import pytest
from pydantic import model_validator

from persistence import PersistenceError
from workflow import (
    Event,
    ExecutionRequest,
    Node,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowError,
    WorkflowState,
    await_event,
    idempotency_key,
    interrupt,
    interrupt_if,
    memoize,
    recall_memo,
    sleep_until,
)


class Again(Event):
    round: int = 1


class Held(WorkflowState):
    low: int = 0
    high: int = 10
    name: str | None = None


@pytest.fixture
def runs() -> list[str]:
    """Return which closures ran."""
    return []


@pytest.fixture
def noted(runs):
    """Return what makes a closure that says that it ran and gives a value."""

    def make(name: str, value: Any = None):
        def closure() -> Any:
            runs.append(name)
            return value

        return closure

    return make


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, (1, (2,)), {"a": {1, 2}}, {3: "x"}])
def test_c128_a_memo_is_recorded_once_whatever_its_value(define, fail_once, trip, runs, noted, value) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        result = memoize("value", noted("value", value))
        fail_once()
        return StopEvent(result)

    with pytest.raises(trip):
        define(node).run()
    result = define(node).run().execution.result
    assert (result, type(result)) == (value, type(value))
    assert runs == ["value"]


def test_c130_a_closure_that_fails_records_nothing(define, fail_once, trip, runs) -> None:
    def closure() -> int:
        runs.append("ran")
        fail_once()
        return 5

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(memoize("value", closure))

    with pytest.raises(trip):
        define(node).run()
    assert define(node).run().execution.result == 5
    assert runs == ["ran", "ran"]


def test_c131_the_same_name_twice_gives_the_first_value(define, runs, noted) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([memoize("value", noted("first", 1)), memoize("value", noted("second", 2))])

    assert define(node).run().execution.result == [1, 1]
    assert runs == ["first"]


def test_memos_of_another_visit_of_the_same_node_are_its_own(define, runs, noted) -> None:
    def node(event: Again, state: WorkflowState) -> Again | StopEvent:
        state["values"] = [*state.get("values", []), memoize("value", noted(f"round {event.round}", event.round))]
        return StopEvent(state["values"]) if event.round == 3 else Again(round=event.round + 1)

    assert define(node, start_event=Again()).run().execution.result == [1, 2, 3]


def test_c133_memos_of_an_earlier_run_are_not_seen(define, fail_once, trip, runs, noted) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("value", noted("value"))
        fail_once()
        return StopEvent()

    with pytest.raises(trip):
        define(node).run()
    define(node).run(ExecutionRequest.start())
    assert runs == ["value", "value"]


def test_c123_a_step_record_of_another_run_is_not_visible(define, store, fail_once, trip, runs) -> None:
    def node(event: Again, state: WorkflowState) -> StopEvent | Again:
        runs.append(f"round {event.round}")
        if event.round == 1:
            return Again(round=2)
        fail_once()
        return StopEvent()

    with pytest.raises(trip):
        define(node, start_event=Again()).run()
    fence, records = store.get("w", "__control"), store.load("w")
    [step] = [key for key in records if key.endswith("-0")]
    other = f"other/{step.partition('/')[2]}"
    store.write_if_unchanged("w", "__control", fence, {other: records[step]}, [step])
    define(node, start_event=Again()).run()
    assert runs == ["round 1", "round 2", "round 1", "round 2"]


def test_c134_recall_reads_and_never_runs(define, fail_once, trip) -> None:
    seen: list[Any] = []

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        seen.append(recall_memo("value"))
        memoize("value", lambda: 5)
        seen.append(recall_memo("value"))
        fail_once()
        return StopEvent()

    with pytest.raises(trip):
        define(node).run()
    define(node).run()
    assert seen == [None, 5, 5, 5]


@pytest.mark.parametrize(
    "call",
    [
        lambda: memoize("a", int),
        lambda: recall_memo("a"),
        lambda: idempotency_key("a"),
        lambda: await_event("a"),
        lambda: interrupt(WaitForEventRequest("a")),
        lambda: interrupt_if(False, WaitForEventRequest("a")),
    ],
)
def test_outside_a_step_these_calls_raise(define, call) -> None:
    with pytest.raises(WorkflowError, match="only inside a running node"):
        call()

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    define(node).run()
    with pytest.raises(WorkflowError, match="only inside a running node"):
        call()


def test_a_memo_inside_a_memo_is_kept_when_the_outer_one_fails(define, fail_once, trip, runs, noted) -> None:
    def outer() -> list[int]:
        inner = memoize("inner", noted("inner", 1))
        fail_once()
        runs.append("outer")
        return [inner]

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        result = memoize("outer", outer)
        return StopEvent([result, memoize("inner", noted("again", 2))])

    with pytest.raises(trip):
        define(node).run()
    assert define(node).run().execution.result == [[1], 1]
    assert runs == ["inner", "outer"]


def test_a_reserved_memo_name_is_refused(define) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("__answer.0", int)
        return StopEvent()

    with pytest.raises(WorkflowError, match="reserved"):
        define(node).run()


@pytest.mark.parametrize("name", ["", "a::b", "a/b", "ünï", "x" * 1000, "a\x00b"])
def test_a_memo_may_have_any_other_name(define, fail_once, trip, name, runs, noted) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize(name, noted("once"))
        fail_once()
        return StopEvent()

    with pytest.raises(trip):
        define(node).run()
    define(node).run()
    assert runs == ["once"]


def test_a_corrupt_memo_is_an_error_with_its_key(define, store, fail_once, trip, runs, noted) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("value", noted("value"))
        fail_once()
        return StopEvent()

    with pytest.raises(trip):
        define(node).run()
    [key] = [key for key in store.load("w") if key.endswith("::value")]
    store.write_if_unchanged("w", "__control", store.get("w", "__control"), {key: b"{"})
    with pytest.raises(PersistenceError) as caught:
        define(node).run()
    assert key in str(caught.value)
    assert runs == ["value"]


def test_the_idempotency_key_is_the_same_in_every_attempt_and_different_elsewhere(define, fail_once, trip) -> None:
    keys: list[str] = []

    def node(event: Again, state: WorkflowState) -> Again | StopEvent:
        keys.extend([idempotency_key("a"), idempotency_key("b")])
        fail_once()
        return StopEvent() if event.round == 2 else Again(round=2)

    with pytest.raises(trip):
        define(node, start_event=Again()).run()
    define(node, start_event=Again()).run()
    first, second, third = keys[:2], keys[2:4], keys[4:]
    assert first == second
    assert len({*first, *third}) == 4


def test_c138_a_node_object_keeps_nothing_between_steps(define) -> None:
    """Waits, answers and memos belong to the step, not to the node."""

    class Asking(Node):
        def __call__(self, event: Again, state: WorkflowState) -> Again | StopEvent:
            answer = self.await_event(f"go {event.round}")
            state["answers"] = [*state.get("answers", []), answer]
            return StopEvent(state["answers"]) if event.round == 2 else Again(round=2)

    definition = define(Asking(), start_event=Again())
    assert definition.run().interrupt_request.event_name == "go 1"
    assert definition.run(ExecutionRequest.signal("go 1", 1)).interrupt_request.event_name == "go 2"
    assert definition.run(ExecutionRequest.signal("go 2", 2)).execution.result == [1, 2]


def test_c125_a_failed_node_leaves_no_trace_in_the_state(define, fail_once, trip) -> None:
    def first(event: StartEvent, state: WorkflowState) -> Again:
        state["list"] = [1]
        state["gone"] = True
        return Again()

    def second(event: Again, state: WorkflowState) -> StopEvent:
        state["list"].append(2)
        state.delete("gone")
        fail_once()
        return StopEvent(state.all())

    with pytest.raises(trip):
        define(first, second).run()
    recovered = define(first, second).run()
    assert recovered.execution.result == {"list": [1, 2]}


def test_c126_the_seed_of_a_first_node_that_resumes_is_the_definitions_own(define) -> None:
    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        state["seen"] = state["seed"]
        await_event("go")
        return StopEvent(state["seen"])

    define(node, state=WorkflowState(seed=1)).run()
    rebuilt = define(node, state=WorkflowState(seed=2))
    assert rebuilt.run(ExecutionRequest.resume())["seen"] == 1
    assert rebuilt.run(ExecutionRequest.resume({})).execution.result == 2


def test_c127_a_resumed_node_makes_its_changes_once(define) -> None:
    def first(event: StartEvent, state: WorkflowState) -> Again:
        state["count"] = 1
        return Again()

    def second(event: Again, state: WorkflowState) -> StopEvent:
        state["count"] += 1
        await_event("go")
        return StopEvent(state["count"])

    assert define(first, second).run()["count"] == 2
    assert define(first, second).run(ExecutionRequest.resume({})).execution.result == 2


def test_a_state_is_replayed_change_by_change(define, fail_once, trip) -> None:
    """Keys that are set, changed in place, deleted and set again end up as they were."""

    def node(event: Again, state: WorkflowState) -> Again | StopEvent:
        match event.round:
            case 1:
                state.set("list", [1])
                state.set("doomed", 1)
            case 2:
                state["list"].append(2)
                del state["doomed"]
                state.set("none", None)
            case 3:
                state.set("doomed", 3)
                state.set("nested", {"a": (1, {2: "x"})})
            case 4:
                state["nested"]["a"][1][2] = "y"
                del state["list"]
            case _:
                fail_once()
                return StopEvent(state.all())
        return Again(round=event.round + 1)

    with pytest.raises(trip):
        define(node, start_event=Again()).run()
    replayed = define(node, start_event=Again()).run().execution.result
    assert replayed == {"doomed": 3, "none": None, "nested": {"a": (1, {2: "y"})}}
    assert define(node, start_event=Again()).run().execution.result == replayed


def test_fields_that_are_valid_only_together_can_be_replayed(define, fail_once, trip) -> None:
    class Range(WorkflowState):
        low: int = 0
        high: int = 10

        @model_validator(mode="after")
        def ordered(self) -> "Range":
            if self.low > self.high:
                raise ValueError("low above high")
            return self

    def first(event: StartEvent, state: Range) -> Again:
        state.high = 100
        return Again()

    def second(event: Again, state: Range) -> StopEvent | Again:
        if event.round == 1:
            state.high = 200
            state.low = 150
            return Again(round=2)
        fail_once()
        return StopEvent([state.low, state.high])

    with pytest.raises(trip):
        define(first, second, state=Range()).run()
    assert define(first, second, state=Range()).run().execution.result == [150, 200]


def test_a_replayed_state_is_of_its_own_class_with_its_fields_validated(define, fail_once, trip) -> None:
    def first(event: StartEvent, state: Held) -> Again:
        state.low = 5
        state["extra"] = 1
        return Again()

    def second(event: Again, state: Held) -> StopEvent:
        fail_once()
        return StopEvent([type(state) is Held, state.low, state["extra"], state.name])

    with pytest.raises(trip):
        define(first, second, state=Held()).run()
    assert define(first, second, state=Held()).run().execution.result == [True, 5, 1, None]


def test_waits_in_a_memo_closure_do_not_record_it_before_it_ends(define, runs, clock) -> None:
    """C145: the closure is entered again, and the outer waits keep their places."""

    def ask() -> Any:
        runs.append("entered")
        return await_event("inner")

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        first = memoize("asked", ask)
        second = await_event("outer")
        sleep_until(clock.now())
        return StopEvent([first, second, memoize("asked", ask)])

    assert define(node).run().interrupt_request.event_name == "inner"
    assert define(node).run(ExecutionRequest.resume(1)).interrupt_request.event_name == "outer"
    assert define(node).run(ExecutionRequest.resume(2)).is_interrupted()
    assert define(node).run(ExecutionRequest.resume()).execution.result == [1, 2, 1]
    assert runs == ["entered", "entered"]


def test_a_memo_recorded_with_its_answer_does_not_block_the_next_wait_after_a_failure(define, fail_once, trip) -> None:
    """The closure, and with it the wait that was answered, is not entered again: its answer counts as delivered."""

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        inside = memoize("asked", lambda: await_event("inside"))
        fail_once()
        return StopEvent([inside, await_event("outside")])

    define(node).run()
    with pytest.raises(trip):
        define(node).run(ExecutionRequest.resume(1))
    assert define(node).run().interrupt_request.event_name == "outside"
    assert define(node).run(ExecutionRequest.resume(2)).execution.result == [1, 2]
