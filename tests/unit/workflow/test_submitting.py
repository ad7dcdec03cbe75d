"""Answers prepared against what is seen now, delivered once (C072, C161 to C164)."""

import asyncio
import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from workflow import (
    ExecutionRequest,
    InputTranslationError,
    InterruptEvent,
    InterruptRequest,
    RefusalReason,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    interrupt,
    sleep_until,
)


def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
    return StopEvent(await_event("go"))


def ask_twice(event: StartEvent, state: WorkflowState) -> StopEvent:
    first = await_event("go")
    return StopEvent([first, await_event("go")])


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


def reason_of(call: Callable[[], Any]) -> RefusalReason:
    """The reason of a refusal."""
    with pytest.raises(WorkflowRefusedError) as refused:
        call()
    return refused.value.reason


def test_c161_an_answer_is_fenced_by_run_attempt_and_interruption_and_submitting_writes_nothing(define, store) -> None:
    definition = define(ask)
    definition.run(ExecutionRequest.start(run_id="r"))
    before = store.load("w")
    store.forget()
    pending = definition.submit_inputs({"n": 1})
    assert pending.request == ExecutionRequest.resume(
        {"n": 1}, expected_run_id="r", expected_execution_attempt=1, expected_interrupt_id=1
    )
    assert (store.writes, store.load("w")) == ([], before)
    assert pending.run().execution.result == {"n": 1}


@pytest.mark.parametrize("answer", [{}, [], 0, "", False, {"a": [None]}])
def test_an_empty_answer_is_an_answer(define, answer) -> None:
    define(ask).run()
    result = define(ask).submit_inputs(answer).run().execution.result
    assert (result, type(result)) == (answer, type(answer))


def test_none_is_no_answer_and_a_translator_that_forgets_to_return_one_is_told_so(define, store) -> None:
    definition = define(ask)
    definition.run()
    before = store.load("w")
    for translator in (None, lambda payload, request: None):
        with pytest.raises(InputTranslationError, match="None is none"):
            definition.submit_inputs(None, translator)
    assert store.load("w") == before


@pytest.mark.parametrize("state", ["none", "pending", "failed", "completed", "cancelled"])
def test_c162_where_nothing_waits_nothing_can_be_submitted(define, store, trip, fail_once, state) -> None:
    def work(event: StartEvent, state_: WorkflowState) -> StopEvent:
        if state == "failed":
            fail_once()
        return StopEvent()

    definition = define(work if state != "cancelled" else ask, retain_completion=True)
    match state:
        case "none":
            pass
        case "pending":
            definition.ignite()
        case "failed":
            with pytest.raises(trip):
                definition.run()
        case _:
            definition.run()
            if state == "cancelled":
                definition.cancel()
    store.forget()
    with pytest.raises(InputTranslationError, match="waits for no answer"):
        definition.submit_inputs({})
    assert store.writes == []


def test_c163_a_translator_gets_the_payload_and_the_request_and_returns_the_answer(define) -> None:
    seen: list[tuple[Any, InterruptRequest]] = []

    def translate(payload: Any, request: InterruptRequest) -> Any:
        seen.append((payload, request))
        return {"approved": payload == "y", "of": request.id}

    definition = define(ask)
    waiting = definition.run().interrupt_request
    assert definition.submit_inputs("y", translate).run().execution.result == {"approved": True, "of": 1}
    assert seen == [("y", waiting)]


def test_c163_a_translator_that_raises_leaves_the_run_waiting(define, store) -> None:
    definition = define(ask)
    definition.run()
    before = store.load("w")

    def refuse(payload: Any, request: InterruptRequest) -> Any:
        raise LookupError(payload)

    with pytest.raises(LookupError, match="what"):
        definition.submit_inputs("what", refuse)
    assert store.load("w") == before
    assert definition.submit_inputs(1).run().execution.result == 1


@pytest.mark.parametrize("answer", [math.nan, math.inf, {1, 2}, {1: "a"}, object(), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)])
@pytest.mark.parametrize("translated", [False, True])
def test_c072_what_is_no_json_is_refused_at_once(define, store, answer, translated) -> None:
    definition = define(ask)
    definition.run()
    before = store.load("w")
    with pytest.raises(InputTranslationError):
        definition.submit_inputs("any", lambda payload, request: answer) if translated else definition.submit_inputs(answer)
    assert store.load("w") == before


def test_an_answer_is_captured_when_it_is_submitted(define) -> None:
    definition, answer = define(ask), {"items": [1]}
    definition.run()
    pending = definition.submit_inputs(answer)
    answer["items"].append(2)
    assert pending.run().execution.result == {"items": [1]}


@pytest.mark.parametrize("retained", [False, True])
def test_c164_one_pending_execution_delivers_once(define, retained) -> None:
    definition = define(ask, retain_completion=retained)
    definition.run()
    pending = definition.submit_inputs(1)
    assert pending.run().execution.result == 1
    assert reason_of(pending.run) is (RefusalReason.STALE_ATTEMPT if retained else RefusalReason.STALE_RUN)
    assert reason_of(lambda: next(pending.events())) is (RefusalReason.STALE_ATTEMPT if retained else RefusalReason.STALE_RUN)


def test_c164_of_two_answers_to_one_question_the_first_counts(define) -> None:
    definition = define(ask_twice)
    definition.run()
    one, other = definition.submit_inputs("one"), definition.submit_inputs("other")
    assert other.run().interrupt_request.id == 2
    assert reason_of(one.run) is RefusalReason.STALE_ATTEMPT
    assert definition.submit_inputs("last").run().execution.result == ["other", "last"]


def test_an_answer_to_a_run_that_was_replaced_or_cancelled_is_refused(define) -> None:
    definition = define(ask, retain_completion=True)
    run_id = definition.run().execution.run_id
    pending = definition.submit_inputs(1)
    definition.cancel()
    assert reason_of(pending.run) is RefusalReason.CANCELLED
    definition.acknowledge(run_id)
    definition.run()
    assert reason_of(pending.run) is RefusalReason.STALE_RUN


def test_an_answer_that_the_request_refuses_leaves_it_open(define, clock) -> None:
    class Even(WaitForEventRequest):
        def validate_input(self, kind: Any, payload: Any, now: dt.datetime) -> None:
            if payload % 2:
                raise ValueError(f"{payload} is odd")

    def even(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(Even("number")))

    def sleep(event: StartEvent, state: WorkflowState) -> StopEvent:
        sleep_until(clock.now() + dt.timedelta(hours=1))
        return StopEvent()

    definition = define(even)
    definition.run()
    assert reason_of(definition.submit_inputs(3).run) is RefusalReason.NOT_AWAITED
    assert definition.submit_inputs(4).run().execution.result == 4
    definition = define(sleep)
    definition.run()
    assert reason_of(definition.submit_inputs({}).run) is RefusalReason.NOT_AWAITED
    assert definition.inspect().status is WorkflowStatus.SUSPENDED


def test_a_failed_run_that_holds_an_answer_takes_that_answer_again_and_no_other(define, fail_once, trip) -> None:
    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        answer = await_event("go")
        fail_once()
        return StopEvent(answer)

    definition = define(work)
    definition.run()
    with pytest.raises(trip):
        definition.submit_inputs({"a": 1, "b": 2}).run()
    assert reason_of(definition.submit_inputs({"a": 1}).run) is RefusalReason.NOT_AWAITED
    assert definition.submit_inputs({"b": 2, "a": 1}).run().execution.result == {"a": 1, "b": 2}


def test_a_pending_execution_can_be_read_and_awaited_too(define) -> None:
    definition = define(ask_twice)
    definition.run()
    stream = definition.submit_inputs(1).events()
    assert [type(item) for item in stream] == [InterruptEvent]
    assert stream.state.interrupt_request.id == 2
    pending = definition.submit_inputs(2)
    assert pending.aio.request is pending.request
    assert asyncio.run(pending.aio.run()).execution.result == [1, 2]


def test_a_pending_execution_survives_a_queue(define) -> None:
    definition = define(ask)
    definition.run()
    text = definition.submit_inputs({"n": 1}).request.to_json()
    assert definition.run(ExecutionRequest.from_json(text)).execution.result == {"n": 1}


def test_an_unbound_definition_is_refused(define) -> None:
    with pytest.raises(WorkflowError, match="no workflow ID"):
        define(ask, workflow_id=None).submit_inputs({})
