"""The tables of the engine's admission rules, cell by cell, on values alone."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from workflow import (
    ApprovalRequest,
    ExecutionRequest,
    JsonSerializer,
    RefusalReason,
    RunInFlightError,
    SleepUntilRequest,
    StaleRunError,
    WaitForEventRequest,
    WorkflowRefusedError,
    WorkflowStatus,
    lifecycle,
)
from workflow.control import AcceptedInput, ActiveInterrupt, Control
from workflow.interrupts import InputKind, InterruptRequest

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
SECOND = int(NOW.timestamp())
LATER = NOW + dt.timedelta(seconds=1)
LEASE = SECOND + 60


def waiting(request: InterruptRequest, number: int = 1, answer: AcceptedInput | None = None) -> ActiveInterrupt:
    """An interruption that is current."""
    return ActiveInterrupt(request.with_id(number), "ask-0", "0", answer)


OPEN = waiting(WaitForEventRequest("payment"))
ANSWERED = waiting(WaitForEventRequest("payment"), answer=AcceptedInput(InputKind.EVENT, {"a": 1, "b": 2}))
EXPIRED = waiting(WaitForEventRequest("payment", NOW))
NOT_EXPIRED = waiting(WaitForEventRequest("payment", LATER))
AWAKE = waiting(SleepUntilRequest(NOW))
ASLEEP = waiting(SleepUntilRequest(LATER))

BASE = Control("mine", WorkflowStatus.RUNNING, 3, "writer", commit=5, next_interrupt_id=2)


def control(status: WorkflowStatus, interrupt: ActiveInterrupt | None = None, lease: int | None = None) -> Control:
    """A control record of the run `mine` at attempt 3."""
    return replace(BASE, status=status, interrupt=interrupt, lease_expires_at=lease)


RUNS: dict[str, Control] = {
    "pending": replace(BASE, status=WorkflowStatus.PENDING, attempt=0),
    "running, live lease": control(WorkflowStatus.RUNNING, lease=SECOND + 1),
    "running, no lease": control(WorkflowStatus.RUNNING),
    "running, lease ends now": control(WorkflowStatus.RUNNING, lease=SECOND),
    "running, expired": control(WorkflowStatus.RUNNING, lease=SECOND - 1),
    "failed": control(WorkflowStatus.FAILED),
    "suspended": control(WorkflowStatus.SUSPENDED, OPEN),
    "completed": control(WorkflowStatus.COMPLETED),
    "cancelled": control(WorkflowStatus.CANCELLED),
    "suspended, deadline passed": control(WorkflowStatus.SUSPENDED, EXPIRED),
    "suspended, deadline ahead": control(WorkflowStatus.SUSPENDED, NOT_EXPIRED),
    "suspended, asleep": control(WorkflowStatus.SUSPENDED, ASLEEP),
    "suspended, time to wake": control(WorkflowStatus.SUSPENDED, AWAKE),
    "failed, waiting": control(WorkflowStatus.FAILED, OPEN),
    "failed, answered": control(WorkflowStatus.FAILED, ANSWERED),
    "failed, deadline passed": control(WorkflowStatus.FAILED, EXPIRED),
    "running live, waiting": control(WorkflowStatus.RUNNING, OPEN, SECOND + 1),
    "running live, answered": control(WorkflowStatus.RUNNING, ANSWERED, SECOND + 1),
    "running expired, waiting": control(WorkflowStatus.RUNNING, OPEN, SECOND),
    "running expired, answered": control(WorkflowStatus.RUNNING, ANSWERED, SECOND),
    "running no lease, waiting": control(WorkflowStatus.RUNNING, OPEN),
}

# --- starting ---------------------------------------------------------------------------------------------------------------

STARTS: dict[str, ExecutionRequest] = {
    "run()": ExecutionRequest.start(recover_failed=True),
    "start": ExecutionRequest.start(),
    "start mine": ExecutionRequest.start(run_id="mine"),
    "start mine or recover": ExecutionRequest.start(run_id="mine", recover_failed=True),
    "start other": ExecutionRequest.start(run_id="other"),
    "start other or recover": ExecutionRequest.start(run_id="other", recover_failed=True),
}
START_TABLE: dict[str, tuple[str, ...]] = {
    # in the order of STARTS
    "pending": ("in flight", "in flight", "in flight", "recovered", "in flight", "in flight"),
    "running, live lease": ("in flight",) * 6,
    "running, no lease": ("in flight",) * 6,
    "running, lease ends now": ("superseded", "superseded", "in flight", "recovered", "in flight", "in flight"),
    "running, expired": ("superseded", "superseded", "in flight", "recovered", "in flight", "in flight"),
    "failed": ("recovered", "superseded", "in flight", "recovered", "in flight", "in flight"),
    "suspended": ("in flight",) * 6,
    "completed": ("in flight",) * 6,
}


@pytest.mark.parametrize(
    ("run", "start", "expected"),
    [(run, start, cell) for run, cells in START_TABLE.items() for start, cell in zip(STARTS, cells, strict=True)],
)
def test_a_start_meets_a_run(run: str, start: str, expected: str) -> None:
    """The table of starts; C015, C024, C031, C034, C035, C037."""
    assert outcome_of_start(RUNS[run], STARTS[start]) == expected


def outcome_of_start(current: Control, request: ExecutionRequest) -> str:
    """The cell of the table."""
    try:
        decision = lifecycle.meet("w", current, request, SECOND)
    except RunInFlightError as refused:
        described = (refused.reason, refused.run_id, refused.status, refused.execution_attempt)
        met = (RefusalReason.RUN_IN_FLIGHT, current.run_id, current.status, current.attempt)
        return "in flight" if described == met else f"described as {described}"
    if isinstance(decision, lifecycle.Recover):
        assert (decision.run_id, decision.attempt) == (current.run_id, current.attempt)
        return "recovered"
    return "superseded"


@pytest.mark.parametrize(
    ("run", "verbs"),
    [
        ("pending", ["resume()", "abandon()"]),
        ("suspended", ["#1", "wait_for_event", "'payment'", "signal()", "resume(payload)", "abandon()"]),
        ("suspended, deadline ahead", [LATER.isoformat()]),
        ("suspended, asleep", ["sleep_until", LATER.isoformat()]),
        ("completed", ["acknowledge()"]),
        ("running, live lease", ["wait", "12:00:01"]),
        ("running, no lease", ["resume()"]),
        ("running, expired", ["try again", "resume()"]),
    ],
)
def test_the_refusal_of_a_start_names_the_verb_that_settles_the_run(run: str, verbs: list[str]) -> None:
    refused = lifecycle.run_in_flight("w", RUNS[run], STARTS["start"], SECOND)
    assert [verb for verb in verbs if verb not in str(refused)] == []


def test_the_refusal_of_a_reserved_start_says_whose_run_holds_the_id() -> None:
    """C031, C035."""
    assert "your run 'mine'" in str(lifecycle.run_in_flight("w", RUNS["failed"], STARTS["start mine"], SECOND))
    assert "by run 'mine'" in str(lifecycle.run_in_flight("w", RUNS["failed"], STARTS["start other"], SECOND))


def test_a_refusal_of_a_suspended_run_without_a_request_is_still_a_refusal() -> None:
    """C318."""
    refused = lifecycle.run_in_flight("w", control(WorkflowStatus.SUSPENDED), STARTS["start"], SECOND)
    assert refused.interrupt is None
    assert "suspended" in str(refused)


# --- continuing -------------------------------------------------------------------------------------------------------------

ANSWER = {"b": 2, "a": 1}
REQUESTS: dict[str, ExecutionRequest] = {
    "resume": ExecutionRequest.resume(),
    "answer": ExecutionRequest.resume(ANSWER),
    "other answer": ExecutionRequest.resume({"a": 1.0, "b": 2}),
    "signal": ExecutionRequest.signal("payment", ANSWER),
    "other signal": ExecutionRequest.signal("refund", ANSWER),
    "resume other run": ExecutionRequest.resume(expected_run_id="other"),
    "resume other attempt": ExecutionRequest.resume(ANSWER, expected_run_id="mine", expected_execution_attempt=9),
    "answer other interruption": ExecutionRequest.resume(ANSWER, expected_interrupt_id=9),
}
CONTINUE_TABLE: dict[str, dict[str, str]] = {
    "pending": {
        "resume": "claimed",
        "answer": "not_awaited",
        "signal": "not_awaited",
        "resume other run": "stale_run",
        "resume other attempt": "stale_attempt",
    },
    "running, live lease": {
        "resume": "executing",
        "answer": "not_awaited",
        "signal": "not_awaited",
        "resume other run": "stale_run",
        "resume other attempt": "stale_attempt",
    },
    "running, no lease": {"resume": "claimed", "answer": "not_awaited"},
    "running, lease ends now": {"resume": "claimed", "answer": "not_awaited", "signal": "not_awaited"},
    "running, expired": {"resume": "claimed"},
    "failed": {"resume": "claimed", "answer": "not_awaited", "signal": "not_awaited"},
    "suspended": {
        "resume": "shown",
        "answer": "claimed with event",
        "other answer": "claimed with event",
        "signal": "claimed with event",
        "other signal": "not_awaited",
        "resume other run": "stale_run",
        "resume other attempt": "stale_attempt",
        "answer other interruption": "not_awaited",
    },
    "completed": {
        "resume": "outcome",
        "answer": "outcome",
        "signal": "not_awaited",
        "resume other run": "stale_run",
        "resume other attempt": "stale_attempt",
    },
    "cancelled": {"resume": "cancelled", "answer": "cancelled", "signal": "cancelled", "resume other run": "stale_run"},
    "suspended, deadline passed": {
        "resume": "claimed with expired",
        "answer": "claimed with event",
        "signal": "claimed with event",
    },
    "suspended, deadline ahead": {"resume": "shown", "answer": "claimed with event"},
    "suspended, asleep": {"resume": "shown", "answer": "not_awaited", "signal": "not_awaited"},
    "suspended, time to wake": {"resume": "claimed with timer", "answer": "not_awaited", "signal": "not_awaited"},
    "failed, waiting": {"resume": "settled", "answer": "claimed with event", "signal": "claimed with event"},
    "failed, answered": {
        "resume": "claimed with event",
        "answer": "claimed with event",
        "signal": "claimed with event",
        "other answer": "not_awaited",
        "other signal": "not_awaited",
    },
    "failed, deadline passed": {"resume": "claimed with expired"},
    "running live, waiting": {
        "resume": "executing",
        "answer": "executing",
        "signal": "executing",
        "other signal": "not_awaited",
    },
    "running live, answered": {"resume": "executing", "answer": "executing"},
    "running expired, waiting": {"resume": "settled", "answer": "executing", "signal": "executing"},
    "running expired, answered": {"resume": "claimed with event", "answer": "executing"},
    "running no lease, waiting": {"resume": "settled", "answer": "executing"},
}


def decide(current: Control | None, request: ExecutionRequest) -> Any:
    """What `continue_run` decides."""
    return lifecycle.continue_run("w", current, request, NOW, writer="next", lease=LEASE)


@pytest.mark.parametrize(
    ("run", "request_", "expected"),
    [(run, request, cell) for run, cells in CONTINUE_TABLE.items() for request, cell in cells.items()],
)
def test_a_request_meets_a_run(run: str, request_: str, expected: str) -> None:
    """The order of the checks; C024, C025, C041, C044, C050, C051, C055, C056, C058, C059, C067, C069, C103, C151, C152."""
    assert outcome_of_request(RUNS[run], REQUESTS[request_]) == expected


def outcome_of_request(current: Control, request: ExecutionRequest) -> str:
    """The cell of the table; what is written is checked on the way."""
    try:
        decision = decide(current, request)
    except WorkflowRefusedError as refused:
        return refused.reason.value
    match decision:
        case lifecycle.ServeOutcome():
            return "outcome"
        case lifecycle.IdlePoll(settled=None):
            return "shown"
        case lifecycle.IdlePoll(settled=settled):
            shown = (settled.status, settled.attempt, settled.lease_expires_at, settled.interrupt, settled.writer)
            assert shown == (WorkflowStatus.SUSPENDED, current.attempt + 1, None, current.interrupt, "next")
            return "settled"
        case lifecycle.Claim(control=claimed):
            state = (claimed.status, claimed.attempt, claimed.lease_expires_at, claimed.writer, claimed.commit)
            assert state == (WorkflowStatus.RUNNING, current.attempt + 1, LEASE, "next", 0)
            accepted = claimed.interrupt and claimed.interrupt.input
            return f"claimed with {accepted.kind.value}" if accepted else "claimed"
        case _:
            raise AssertionError(decision)


def test_without_a_run_a_continuation_finds_none_unless_one_was_expected() -> None:
    """C041."""
    for request in (ExecutionRequest.resume(), ExecutionRequest.resume(1), ExecutionRequest.signal("payment")):
        with pytest.raises(WorkflowRefusedError) as refused:
            decide(None, request)
        assert refused.value.reason is RefusalReason.NO_RUN
    with pytest.raises(StaleRunError) as stale:
        decide(None, ExecutionRequest.resume(expected_run_id="mine"))
    assert (stale.value.expected_run_id, stale.value.actual_run_id) == ("mine", None)


def test_the_answer_that_is_accepted_travels_with_the_claim_and_is_kept_as_it_was() -> None:
    """C069, C075."""
    claimed = decide(RUNS["suspended"], REQUESTS["answer"]).control
    assert claimed.interrupt.input == AcceptedInput(InputKind.EVENT, {"a": 1, "b": 2})
    again = decide(replace(claimed, status=WorkflowStatus.FAILED), REQUESTS["answer"]).control
    assert again.interrupt == claimed.interrupt


@pytest.mark.parametrize(
    ("held", "given", "same"),
    [
        ({"a": [1, 2]}, {"a": [1, 2]}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 0}, {"a": False}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": None}, {}, False),
        ([], {}, False),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
    ],
)
def test_answers_are_equal_as_canonical_json(held: Any, given: Any, same: bool) -> None:
    """C069: key order is irrelevant; list order and the types of numbers are not."""
    failed = control(WorkflowStatus.FAILED, waiting(ApprovalRequest("?"), answer=AcceptedInput(InputKind.EVENT, held)))
    if same:
        assert decide(failed, ExecutionRequest.resume(given)).control.interrupt.input.payload == held
    else:
        with pytest.raises(WorkflowRefusedError, match="already has an accepted input"):
            decide(failed, ExecutionRequest.resume(given))


def test_an_answer_does_not_replace_a_deadline_that_was_accepted() -> None:
    """C067."""
    failed = control(WorkflowStatus.FAILED, replace(EXPIRED, input=AcceptedInput(InputKind.EXPIRED)))
    with pytest.raises(WorkflowRefusedError, match="already has an accepted input"):
        decide(failed, REQUESTS["answer"])


def test_the_fence_of_an_interruption_is_checked_against_the_current_one() -> None:
    """A queued approval survives a recovery in between, and never answers the next question."""
    fenced = ExecutionRequest.resume(ANSWER, expected_run_id="mine", expected_interrupt_id=1)
    assert outcome_of_request(RUNS["suspended"], fenced) == "claimed with event"
    assert outcome_of_request(replace(RUNS["suspended"], attempt=8), fenced) == "claimed with event"
    assert outcome_of_request(control(WorkflowStatus.SUSPENDED, waiting(ApprovalRequest("?"), 2)), fenced) == "not_awaited"
    assert outcome_of_request(RUNS["failed"], fenced) == "not_awaited"


def test_a_deadline_counts_in_whole_seconds() -> None:
    """C152: the second in which the deadline falls counts as due."""
    soon = control(WorkflowStatus.SUSPENDED, waiting(SleepUntilRequest(NOW + dt.timedelta(milliseconds=900))))
    assert outcome_of_request(soon, REQUESTS["resume"]) == "claimed with timer"


# --- ending from outside ----------------------------------------------------------------------------------------------------

ABANDON_TABLE = {
    "pending": True,
    "running, live lease": "executing",
    "running, no lease": True,
    "running, lease ends now": True,
    "running, expired": True,
    "failed": True,
    "suspended": True,
    "completed": "completed",
    "cancelled": True,
    "failed, answered": True,
}


@pytest.mark.parametrize(("run", "expected"), ABANDON_TABLE.items())
def test_abandoning_a_run(run: str, expected: object) -> None:
    """C082, C084."""
    assert attempted(lambda: lifecycle.abandon("w", RUNS[run], None, None, SECOND)) == expected
    assert attempted(lambda: lifecycle.abandon("w", RUNS[run], "mine", RUNS[run].attempt, SECOND)) == expected


@pytest.mark.parametrize("run", ABANDON_TABLE)
def test_abandoning_another_run_or_attempt_is_stale_whatever_its_state(run: str) -> None:
    """C083."""
    assert attempted(lambda: lifecycle.abandon("w", RUNS[run], "other", None, SECOND)) == "stale_run"
    assert attempted(lambda: lifecycle.abandon("w", RUNS[run], "mine", 9, SECOND)) == "stale_attempt"


def test_abandoning_nothing_is_false_unless_a_run_was_named() -> None:
    """C081."""
    assert lifecycle.abandon("w", None, None, None, SECOND) is False
    assert attempted(lambda: lifecycle.abandon("w", None, "mine", None, SECOND)) == "stale_run"


@pytest.mark.parametrize("run", [run for run in ABANDON_TABLE if run not in ("completed", "cancelled")])
def test_only_a_settled_run_is_acknowledged(run: str) -> None:
    """C087."""
    assert attempted(lambda: lifecycle.acknowledge("w", RUNS[run], "mine", SECOND)) == "not_completed"
    assert attempted(lambda: lifecycle.acknowledge("w", RUNS[run], "other", SECOND)) == "stale_run"


def test_acknowledging_a_completed_run_or_none() -> None:
    """C087."""
    assert attempted(lambda: lifecycle.acknowledge("w", RUNS["completed"], "mine", SECOND)) is None
    assert attempted(lambda: lifecycle.acknowledge("w", None, "mine", SECOND)) == "stale_run"


def attempted(call: Any) -> Any:
    """What a call returns, or the reason of its refusal."""
    try:
        return call()
    except WorkflowRefusedError as refused:
        return refused.reason.value


# --- the control record itself ----------------------------------------------------------------------------------------------


def test_transitions_keep_what_a_recovery_needs() -> None:
    """A failure keeps interruption and answer; a suspension and a completion drop the lease."""
    held = control(WorkflowStatus.RUNNING, ANSWERED, LEASE)
    assert (held.failed().interrupt, held.failed().lease_expires_at) == (ANSWERED, None)
    assert held.suspended().lease_expires_at is None
    assert (held.completed().interrupt, held.completed().lease_expires_at) == (None, None)


def test_an_interruption_gets_the_next_id_and_queues_behind_the_current_one() -> None:
    """C079."""
    free = replace(control(WorkflowStatus.RUNNING, None, LEASE), next_interrupt_id=1)
    first = free.with_interrupt(waiting(ApprovalRequest("first?")))
    second = first.with_interrupt(replace(waiting(ApprovalRequest("second?")), step_id="other-0"))
    assert first.interrupt is not None
    assert (first.interrupt.request.id, first.pending_steps) == (1, ())
    assert (second.interrupt, second.pending_steps, second.next_interrupt_id) == (first.interrupt, ("other-0",), 3)
    assert second.answered(None).pending_steps == ()


@pytest.mark.parametrize("run", RUNS)
def test_a_control_record_reads_back_as_itself(run: str) -> None:
    codec = JsonSerializer()
    read = Control.from_record(codec.loads(codec.dumps(RUNS[run].to_record())))  # pyright: ignore[reportArgumentType]
    assert read == RUNS[run]
    if read.interrupt is not None:
        assert read.interrupt.request.id == 1


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"run": 5},
        {"status": "odd"},
        {"attempt": "1"},
        {"attempt": True},
        {"commit": None},
        {"lease": "soon"},
        {"interrupt": 3},
        {"interrupt": {"id": 1}},
        {"pendingSteps": None},
        {"pendingSteps": [1]},
    ],
)
def test_a_control_record_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Control.from_record({**RUNS["failed"].to_record(), **change})
