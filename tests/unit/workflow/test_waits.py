"""Waits for people, events and moments, and the requests that describe them (I)."""

import datetime as dt
from typing import Any

import pytest
from pydantic import ValidationError

from workflow import (
    Action,
    ApprovalRequest,
    Event,
    ExecutionRequest,
    InputKind,
    InterruptType,
    RefusalReason,
    SleepUntilRequest,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    await_event,
    interrupt,
    interrupt_if,
    memoize,
    sleep_until,
)


class Quota(WaitForEventRequest):
    """A request with a field of its own."""

    customer: str

    def __init__(self, customer: str, **fields: Any) -> None:
        super().__init__(f"quota.{customer}", **{"customer": customer, **fields})

    def metadata(self) -> dict[str, Any]:
        return {"customer": self.customer}


class Next(Event):
    pass


def answered(definition, *answers: Any) -> WorkflowState:
    """Run, and give one answer after the other."""
    state = definition.run()
    for answer in answers:
        state = definition.run(ExecutionRequest.resume(answer))
    return state


def test_c139_c158_waits_in_a_row_get_their_own_answers(define) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([interrupt(ApprovalRequest("Manager?")), interrupt(ApprovalRequest("Finance?"))])

    definition = define(ask)
    seen = []
    for request in (None, ExecutionRequest.resume({"ok": 1}), ExecutionRequest.resume({"ok": 2})):
        state = definition.run(request)
        seen.append(
            (state.execution.attempt, state.interrupt_request and (state.interrupt_request.id, state.interrupt_request.message))
        )  # pyright: ignore
    assert seen == [(1, (1, "Manager?")), (2, (2, "Finance?")), (3, None)]
    assert state.execution.result == [{"ok": 1}, {"ok": 2}]
    assert definition.run().interrupt_request.id == 1


def test_c145_a_wait_inside_a_memo_does_not_shift_the_one_behind_it(define) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        inside = memoize("asked", lambda: {"got": await_event("inside")})
        between = memoize("between", lambda: 0)
        outside = await_event("outside")
        return StopEvent([inside, between, outside])

    assert answered(define(ask), 1, 2).execution.result == [{"got": 1}, 0, 2]


def test_waits_in_nested_memos_are_counted_in_their_own_scopes(define) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        def outer() -> list[Any]:
            first = await_event("outer 1")
            second = memoize("inner", lambda: [await_event("inner 1"), await_event("inner 2")])
            return [first, *second, await_event("outer 2")]

        return StopEvent([*memoize("outer", outer), await_event("last")])

    assert answered(define(ask), 1, 2, 3, 4, 5).execution.result == [1, 2, 3, 4, 5]


def test_a_condition_that_is_false_takes_its_place_and_no_answer(define) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        skipped = interrupt_if(False, WaitForEventRequest("skipped"))
        asked = interrupt_if(True, WaitForEventRequest("asked"))
        return StopEvent([skipped, asked, await_event("last")])

    assert answered(define(ask), {}, 2).execution.result == [None, {}, 2]


def test_the_condition_of_an_answered_wait_no_longer_counts(define) -> None:
    condition = True

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        first = interrupt_if(condition, WaitForEventRequest("first"))
        return StopEvent([first, await_event("second")])

    define(ask).run()
    condition = False
    define(ask).run(ExecutionRequest.resume(1))
    assert define(ask).run(ExecutionRequest.resume(2)).execution.result == [1, 2]


def test_c146_a_wait_that_timed_out_stays_timed_out(define, clock) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        first = await_event("first", expires_at=clock.now())
        return StopEvent([first, await_event("second")])

    define(ask).run()
    clock.advance(1)
    assert define(ask).run(ExecutionRequest.resume()).interrupt_request.event_name == "second"
    assert define(ask).run(ExecutionRequest.resume("late")).execution.result == [None, "late"]


def test_c147_each_node_has_waits_of_its_own(define) -> None:
    def first(event: StartEvent, state: WorkflowState) -> Next:
        state["first"] = await_event("go")
        return Next()

    def second(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent([state["first"], await_event("go")])

    assert answered(define(first, second), 1, 2).execution.result == [1, 2]


@pytest.mark.parametrize("payload", [[], {}, {"a": 1}])
def test_c149_a_payload_is_never_none(define, payload) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([await_event("go")])

    assert answered(define(ask), payload).execution.result == [payload]


def test_a_deadline_ends_the_wait_with_none_at_its_second(define, clock, store) -> None:
    deadline = clock.now() + dt.timedelta(seconds=60)

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([await_event("go", expires_at=deadline)])

    define(ask).run()
    assert store.entry("w").due == deadline.timestamp()
    clock.advance(59)
    assert define(ask).run(ExecutionRequest.resume()).is_interrupted()
    clock.advance(1)
    assert define(ask).run(ExecutionRequest.resume()).execution.result == [None]


def test_c151_an_event_after_the_deadline_is_accepted_while_nobody_polled(define, clock) -> None:
    deadline = clock.now() + dt.timedelta(seconds=60)

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go", expires_at=deadline))

    define(ask).run()
    clock.advance(3600)
    assert define(ask).run(ExecutionRequest.signal("go", "late")).execution.result == "late"


def test_c152_a_sleep_ends_at_its_time_and_takes_no_answer(define, clock) -> None:
    until = clock.now() + dt.timedelta(hours=1)

    def rest(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([sleep_until(until)])

    define(rest).run()
    for request in (ExecutionRequest.resume({}), ExecutionRequest.signal("go")):
        with pytest.raises(WorkflowRefusedError) as refused:
            define(rest).run(request)
        assert refused.value.reason is RefusalReason.NOT_AWAITED
    assert define(rest).run(ExecutionRequest.resume()).is_interrupted()
    clock.advance(3600)
    assert define(rest).run(ExecutionRequest.resume()).execution.result == [None]


def test_c155_the_engine_numbers_requests_itself_on_a_copy(define) -> None:
    mine = WaitForEventRequest("go").with_id(77)

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(mine))

    assert define(ask).run().interrupt_request.id == 1
    assert mine.id == 77
    with pytest.raises(WorkflowError, match="no id yet"):
        _ = WaitForEventRequest("go").id


def test_c156_a_request_of_ones_own_class_survives_the_store_and_describes_itself(define, clock) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(Quota("acme", expires_at=clock.now())))

    for request in (define(ask).run().interrupt_request, define(ask).inspect().interrupt):
        assert type(request) is Quota
        assert list(request.to_json().items()) == [
            ("interruptId", 1),
            ("type", "wait_for_event"),
            ("eventName", "quota.acme"),
            ("expiresAt", clock.now().isoformat()),
            ("customer", "acme"),
        ]


def test_an_approval_waits_for_the_event_approval_and_lists_its_actions(define) -> None:
    request = ApprovalRequest("Sure?", [Action("a", "Delete", "all of it"), Action(id="b", name="Send")])

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(request))

    stored = define(ask).run().interrupt_request
    assert define(ask).inspect().interrupt == stored
    assert (stored.event_name, stored.message, stored.actions) == ("approval", "Sure?", request.actions)
    assert stored.to_json()["actions"][0] == {"id": "a", "name": "Delete", "description": "all of it"}
    assert define(ask).run(ExecutionRequest.signal("approval", {"a": "approve"})).execution.result == {"a": "approve"}


def test_c159_a_suspension_is_returned_and_shown_alike_everywhere(define, store) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        state["before"] = 1
        return StopEvent(await_event("go"))

    state = define(ask).run()
    assert state.is_interrupted()
    assert state.interrupt_request == define(ask).inspect().interrupt
    checkpoint = store.load("w")[f"{state.execution.run_id}/__checkpoint"]
    assert b"before" in checkpoint
    assert b"go" not in checkpoint
    finished = define(ask).run(ExecutionRequest.resume(1))
    assert not finished.is_interrupted()
    assert finished.interrupt_request is None


def test_c160_a_suspension_is_one_write_of_checkpoint_and_control(define, store) -> None:
    """The reference needs two; here nothing can die in between."""

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    run_id = define(ask, lease_timeout=60).run().execution.run_id
    assert [set(call.records) for call in store.writes] == [
        {"__control", "__ignition"},
        {"__control", f"{run_id}/__checkpoint"},
    ]
    assert b'"lease"' not in store.writes[-1].records["__control"]


def test_an_answer_is_recorded_with_the_next_write_and_costs_none_of_its_own(define, store) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        await_event("one")
        memoize("between", int)
        await_event("two")
        return StopEvent()

    run_id = define(ask).run().execution.run_id
    store.forget()
    define(ask).run(ExecutionRequest.resume(1))
    assert store.names == ["load", "write_if_unchanged", "write_if_unchanged", "write_if_unchanged"]
    memo = set(store.writes[1].records)
    assert f"{run_id}/{ask.__qualname__}-0::between" in memo
    assert sum("__answer." in key for key in memo) == 1


def test_a_wait_may_carry_where_to_read_from_and_what_to_match(define) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("paid", since="12-0", match={"order": 7}))

    request = define(ask).run().interrupt_request
    assert define(ask).inspect().interrupt == request
    assert (request.since, dict(request.match)) == ("12-0", {"order": 7})


@pytest.mark.parametrize("make", [lambda when: SleepUntilRequest(when), lambda when: WaitForEventRequest("a", when)])
def test_a_deadline_needs_a_zone(make) -> None:
    with pytest.raises(ValidationError):
        make(dt.datetime(2026, 11, 30))  # noqa: DTZ001


def test_requests_refuse_what_cannot_end_them() -> None:
    now = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
    wait, timed, sleep = WaitForEventRequest("a"), WaitForEventRequest("a", now), SleepUntilRequest(now)
    assert (wait.type, sleep.type) == (InterruptType.WAIT_FOR_EVENT, InterruptType.SLEEP_UNTIL)
    wait.validate_input(InputKind.EVENT, {}, now)
    timed.validate_input(InputKind.EXPIRED, None, now)
    sleep.validate_input(InputKind.TIMER, None, now)
    early = now - dt.timedelta(seconds=1)
    refused = [
        (wait, InputKind.EXPIRED, now),
        (wait, InputKind.TIMER, now),
        (timed, InputKind.EXPIRED, early),
        (timed, InputKind.TIMER, now),
        (sleep, InputKind.TIMER, early),
        (sleep, InputKind.EVENT, now),
        (sleep, InputKind.EXPIRED, now),
    ]
    for request, kind, moment in refused:
        with pytest.raises(ValueError, match=r"wait|sleep"):
            request.validate_input(kind, None, moment)
