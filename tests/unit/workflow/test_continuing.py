"""Answers, signals and fences against a real store, and the answer that outlives a crash (C, D)."""

import json
from typing import Any

import pytest

from persistence import PersistenceError
from workflow import (
    Event,
    ExecutionRequest,
    InputTranslationError,
    RefusalReason,
    RunInFlightError,
    StaleRunError,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
    await_event,
    interrupt,
)


class Asked(Event):
    pass


class Signed(WaitForEventRequest):
    """Accepts only what is signed."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("signed", **fields)

    def validate_input(self, kind, payload, now) -> None:
        super().validate_input(kind, payload, now)
        if not payload.get("signature"):
            raise ValueError("sign it first")


@pytest.fixture
def built() -> list[str]:
    """Return what was built for segments."""
    return []


@pytest.fixture
def asking(define, fail_once, built):
    """Return what makes a workflow that asks `rounds` times, and may fail once after an answer."""

    def make(rounds: int = 1, failing: bool = False, **options: Any):
        def begin(event: StartEvent, state: WorkflowState) -> Asked:
            state.set("begun", True)
            return Asked()

        def ask(event: Asked, state: WorkflowState) -> StopEvent:
            state.set("asking", True)
            answers = [await_event("go") for _ in range(rounds)]
            if failing:
                fail_once("ask")
            built.append("answered")
            return StopEvent(answers)

        def resources():
            built.append("resources")
            return WorkflowResources()

        return define(begin, ask, resources=resources, **options)

    return make


def refused(call) -> RefusalReason:
    """The reason of a refusal."""
    with pytest.raises(WorkflowRefusedError) as caught:
        call()
    return caught.value.reason


def test_c041_nothing_to_continue_writes_nothing(asking, store) -> None:
    for request in (ExecutionRequest.resume(), ExecutionRequest.resume({}), ExecutionRequest.signal("go")):
        assert refused(lambda request=request: asking().run(request)) is RefusalReason.NO_RUN
    assert store.writes == []


def test_c044_a_wrong_attempt_leaves_the_run_byte_for_byte(asking, store) -> None:
    state = asking().run()
    before = store.load("w")
    request = ExecutionRequest.resume({}, expected_run_id=state.execution.run_id, expected_execution_attempt=2)
    assert refused(lambda: asking().run(request)) is RefusalReason.STALE_ATTEMPT
    assert store.load("w") == before


def test_c046_a_fenced_answer_is_delivered_once(asking) -> None:
    first = asking(2).run().execution
    request = ExecutionRequest.resume(1, expected_run_id=first.run_id, expected_execution_attempt=first.attempt)
    assert asking(2).run(request).is_interrupted()
    assert refused(lambda: asking(2).run(request)) is RefusalReason.STALE_ATTEMPT
    assert asking(2).run(ExecutionRequest.resume(2)).execution.result == [1, 2]
    with pytest.raises(StaleRunError):
        asking(2).run(request)


def test_c047_an_idle_poll_shows_the_checkpoint_and_writes_nothing(asking, store, built) -> None:
    first = asking().run()
    store.forget()
    built.clear()
    shown = asking().run(ExecutionRequest.resume())
    assert shown.is_interrupted()
    assert shown.all() == {"begun": True, "asking": True}
    assert (shown.execution.attempt, shown.interrupt_request) == (1, first.interrupt_request)
    assert shown.interrupt_request.id == first.interrupt_request.id == 1  # pyright: ignore
    assert built == []
    assert store.names == ["load"]


@pytest.mark.parametrize("payload", [[], {}, 0, False, "", {"a": [1, None]}])
def test_c048_every_payload_but_none_is_an_answer_and_arrives_as_it_was(asking, payload) -> None:
    asking().run()
    answered = asking().run(ExecutionRequest.resume(payload)).execution.result
    assert answered == [payload]
    assert type(answered[0]) is type(payload)


def test_c050_a_run_that_died_asking_is_settled_before_it_can_be_answered(asking, store, clock) -> None:
    """The engine itself suspends in one write; the control is put back to what a crash between two writes would leave."""
    asking(lease_timeout=60).run()
    leave_running(store, clock)
    clock.advance(60)
    assert refused(lambda: asking().run(ExecutionRequest.resume(1))) is RefusalReason.EXECUTING
    settled = asking().run(ExecutionRequest.resume())
    assert (settled.is_interrupted(), settled.execution.attempt) == (True, 2)
    assert asking().inspect().status is WorkflowStatus.SUSPENDED
    assert asking().run(ExecutionRequest.resume(1)).execution.result == [1]


def leave_running(store, clock) -> None:
    """Turn a suspended run into one that was running with a lease of 60 seconds when its process died."""
    held = store.get("w", "__control")
    record = json.loads(held)
    record |= {"status": "running", "lease": int(clock.now().timestamp()) + 60}
    assert store.write_if_unchanged("w", "__control", held, {"__control": json.dumps(record).encode()})


def test_c051_a_failed_run_without_a_question_takes_no_answer(define, trip, fail_once) -> None:
    def fail(event: StartEvent, state: WorkflowState) -> StopEvent:
        fail_once()
        return StopEvent()

    with pytest.raises(trip):
        define(fail).run()
    assert refused(lambda: define(fail).run(ExecutionRequest.resume(1))) is RefusalReason.NOT_AWAITED


def test_c052_c055_c057_a_signal_reaches_the_wait_of_its_name_only(asking, store) -> None:
    asking(2).run()
    before = store.load("w")
    assert refused(lambda: asking(2).run(ExecutionRequest.signal("stop"))) is RefusalReason.NOT_AWAITED
    assert store.load("w") == before
    asking(2).run(ExecutionRequest.signal("go", {"a": 1}))
    assert asking(2).run(ExecutionRequest.signal("go")).execution.result == [{"a": 1}, {}]


def test_c056_c058_c059_a_retained_completion_is_served_and_never_executed(asking, store, built) -> None:
    options = {"retain_completion": True}
    run_id = asking(**options).run().execution.run_id
    asking(**options).run(ExecutionRequest.resume(7))
    built.clear()
    store.forget()
    served = [
        ExecutionRequest.resume(),
        ExecutionRequest.resume({"late": True}),
        ExecutionRequest.resume(expected_run_id=run_id),
    ]
    for request in served:
        state = asking(**options).run(request)
        assert (state.execution.status, state.execution.result) == (WorkflowStatus.COMPLETED, [7])
        assert state.all() == {"begun": True, "asking": True}
    assert store.names == ["load"] * 3
    assert built == []
    assert refused(lambda: asking().run(ExecutionRequest.signal("go"))) is RefusalReason.NOT_AWAITED
    late = ExecutionRequest.resume(7, expected_run_id=run_id, expected_execution_attempt=1)
    assert refused(lambda: asking().run(late)) is RefusalReason.STALE_ATTEMPT


def test_c060_after_a_clean_completion_there_is_nothing_to_resume(asking) -> None:
    run_id = asking().run().execution.run_id
    asking().run(ExecutionRequest.resume(1))
    assert refused(lambda: asking().run(ExecutionRequest.resume())) is RefusalReason.NO_RUN
    assert refused(lambda: asking().run(ExecutionRequest.resume(expected_run_id=run_id))) is RefusalReason.STALE_RUN
    assert asking().run().execution.run_id != run_id


@pytest.mark.parametrize("ignition", ["gone", "of another run"])
def test_c062_a_run_whose_ignition_does_not_fit_is_an_error_and_no_refusal(asking, store, ignition) -> None:
    asking().run()
    fence = store.get("w", "__control")
    if ignition == "gone":
        store.write_if_unchanged("w", "__control", fence, {}, ["__ignition"])
    else:
        record = json.loads(store.get("w", "__ignition")) | {"run": "other"}
        store.write_if_unchanged("w", "__control", fence, {"__ignition": json.dumps(record).encode()})
    for call in (asking().inspect, lambda: asking().run(ExecutionRequest.resume())):
        with pytest.raises(WorkflowError, match="ignition") as caught:
            call()
        assert not isinstance(caught.value, WorkflowRefusedError)
    assert asking().abandon() is True


@pytest.mark.parametrize(
    ("key", "data", "error"),
    [
        ("__control", b"{", PersistenceError),
        ("__control", b"[1]", WorkflowError),
        ("__control", b'"text"', WorkflowError),
        ("__control", b"{}", WorkflowError),
        ("__ignition", b"\xff", PersistenceError),
        ("__ignition", b"3", PersistenceError),
        ("__checkpoint", b"3", PersistenceError),
        ("__checkpoint", b'{"removed":[]}', PersistenceError),
    ],
)
def test_a_corrupt_record_is_an_error_with_its_key_never_absent(asking, store, key, data, error) -> None:
    run_id = asking().run().execution.run_id
    stored = f"{run_id}/{key}" if key == "__checkpoint" else key
    store.write_if_unchanged("w", "__control", store.get("w", "__control"), {stored: data})
    with pytest.raises(error) as caught:
        asking().run(ExecutionRequest.resume())
    assert "'w'" in str(caught.value)
    assert "control" in str(caught.value) if key == "__control" else key in str(caught.value)
    assert not isinstance(caught.value, WorkflowRefusedError)


@pytest.mark.parametrize("data", [b"[]", b'{"v":9}', b'{"v":1,"event":5,"state":{}}', b"{", b'{"$":"@gone.Event","v":{}}'])
def test_a_corrupt_step_is_never_executed_again(asking, store, data) -> None:
    run_id = asking().run().execution.run_id
    [key] = [key for key in store.load("w") if key.endswith("-0")]
    store.write_if_unchanged("w", "__control", store.get("w", "__control"), {key: data})
    with pytest.raises(PersistenceError) as caught:
        asking().run(ExecutionRequest.resume(1))
    assert key in str(caught.value)
    assert "'w'" in str(caught.value)
    assert asking().inspect().run_id == run_id


def test_c064_refusals_carry_their_details(asking) -> None:
    state = asking().run()
    with pytest.raises(RunInFlightError) as flight:
        asking().run()
    assert flight.value.reason is RefusalReason.RUN_IN_FLIGHT
    assert (flight.value.workflow_id, flight.value.execution_attempt) == ("w", 1)
    with pytest.raises(StaleRunError) as stale:
        asking().run(ExecutionRequest.resume(expected_run_id="r"))
    assert stale.value.reason is RefusalReason.STALE_RUN
    assert (stale.value.expected_run_id, stale.value.actual_run_id) == ("r", state.execution.run_id)
    assert len(RefusalReason) == 11


def test_c065_of_two_answers_with_one_fence_one_is_delivered(asking, store, inner, built) -> None:
    first = asking().run().execution
    request = ExecutionRequest.resume("mine", expected_run_id=first.run_id, expected_execution_attempt=1)
    rival = asking(persistence=inner, retain_completion=True)
    store.after = lambda call: rival.run(request) if call.name == "load" else None
    assert refused(lambda: asking().run(request)) is RefusalReason.STALE_ATTEMPT
    assert built.count("answered") == 1


# --- the accepted answer ----------------------------------------------------------------------------------------------------


def test_c067_c068_c069_an_accepted_answer_outlives_a_failure_and_cannot_be_changed(asking, store, trip, built) -> None:
    asking(failing=True).run()
    with pytest.raises(trip):
        asking(failing=True).run(ExecutionRequest.resume({"a": 1, "b": 2}))
    failed = asking().inspect()
    assert (failed.status, failed.input_accepted, failed.interrupt.id) == (WorkflowStatus.FAILED, True, 1)
    before = store.load("w")
    assert refused(lambda: asking().run(ExecutionRequest.resume({"a": 2}))) is RefusalReason.NOT_AWAITED
    assert store.load("w") == before
    state = asking().run(ExecutionRequest.resume({"b": 2, "a": 1}))
    assert state.execution.result == [{"a": 1, "b": 2}]
    assert state.execution.attempt == 3


def test_c068_a_plain_run_delivers_the_accepted_answer_again(asking, trip) -> None:
    asking(failing=True).run()
    with pytest.raises(trip):
        asking(failing=True).run(ExecutionRequest.resume("yes"))
    assert asking(failing=True).run().execution.result == ["yes"]


@pytest.mark.parametrize("payload", [float("nan"), float("inf"), {"a": {1, 2}}, {1: "a"}, {"a": object()}, [b"x"]])
def test_c072_what_is_no_json_is_refused_when_the_request_is_made(payload) -> None:
    with pytest.raises(InputTranslationError):
        ExecutionRequest.resume(payload)
    with pytest.raises(InputTranslationError):
        ExecutionRequest.signal("go", payload)


def test_c073_an_answer_that_the_request_rejects_changes_nothing(define, store) -> None:
    def sign(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(Signed()))

    define(sign).run()
    before = store.load("w")
    with pytest.raises(WorkflowRefusedError, match="sign it first") as caught:
        define(sign).run(ExecutionRequest.resume({}))
    assert caught.value.reason is RefusalReason.NOT_AWAITED
    assert isinstance(caught.value.__cause__, ValueError)
    assert store.load("w") == before
    assert define(sign).run(ExecutionRequest.resume({"signature": "me"})).execution.result == {"signature": "me"}


def test_c074_an_accepted_answer_stays_attached_while_its_node_runs(define) -> None:
    seen: list[Any] = []

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        await_event("go")
        seen.append(define(ask).inspect())
        return StopEvent()

    define(ask).run()
    define(ask).run(ExecutionRequest.resume(1))
    [during] = seen
    assert (during.status, during.input_accepted, during.interrupt.event_name) == (WorkflowStatus.RUNNING, True, "go")


def test_c075_the_answer_is_stored_in_the_write_of_the_claim(asking, store) -> None:
    asking().run()
    store.forget()
    asking().run(ExecutionRequest.resume({"a": 1}))
    claim = store.writes[0]
    record = json.loads(claim.records["__control"])
    assert record["interrupt"]["input"] == {"kind": "event", "payload": {"a": 1}}
    assert (record["attempt"], record["status"]) == (2, "running")


def test_an_answer_that_is_used_stays_used_through_later_waits_and_failures(define, fail_once, trip) -> None:
    """The first answer is recorded with the second suspension; the second survives a failure in control."""

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        first = await_event("first")
        second = await_event("second")
        fail_once("after both")
        return StopEvent([first, second, await_event("third")])

    define(ask).run()
    assert define(ask).run(ExecutionRequest.signal("first", 1)).interrupt_request.event_name == "second"
    with pytest.raises(trip):
        define(ask).run(ExecutionRequest.signal("second", 2))
    assert define(ask).run().interrupt_request.event_name == "third"
    assert define(ask).run(ExecutionRequest.signal("third", 3)).execution.result == [1, 2, 3]


def test_a_request_goes_through_a_queue_as_text() -> None:
    requests = [
        ExecutionRequest.start(Asked(), run_id="r", recover_failed=True, tag="t"),
        ExecutionRequest.resume(
            {"a": [1, 1.0, None]}, expected_run_id="r", expected_execution_attempt=2, expected_interrupt_id=1
        ),
        ExecutionRequest.signal("go", expected_interrupt_id=3),
        ExecutionRequest.resume(),
    ]
    for request in requests:
        assert ExecutionRequest.from_json(request.to_json()) == request


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"$":"@os.system","v":{}}',
        ExecutionRequest.resume().to_json().replace('"resume"', '"explode"'),
        ExecutionRequest.start(run_id="r").to_json().replace('"r"', '"../r"'),
        ExecutionRequest.start(Asked()).to_json().replace("Asked", "Unknown"),
    ],
)
def test_text_that_is_no_request_is_a_workflow_error(text) -> None:
    with pytest.raises(WorkflowError):
        ExecutionRequest.from_json(text)


# --- a reader without the classes -------------------------------------------------------------------------------------------


@pytest.fixture
def foreign(store):
    """Return a run suspended on a request of a class that this program does not define."""
    control = {
        "v": 1, "run": "r", "status": "suspended", "attempt": 1, "writer": "x", "commit": 2, "lease": None, "nextInterrupt": 2,
        "interrupt": {
            "v": 1, "id": 1, "step": "s-0", "wait": "0", "input": None,
            "request": {"$": "@gone.Request", "v": {"event_name": "go"}},
            "shown": {"interruptId": 1, "type": "wait_for_event", "eventName": "go", "expiresAt": None}, "ends": None,
        },
        "pendingSteps": [],
    }  # fmt: skip
    ignition = {
        "v": 1,
        "run": "r",
        "event": {"$": "@gone.Event", "v": {"date": {"$": "date", "v": "2026-11-30"}}},
        "name": "n",
        "tag": None,
    }
    store.initialize_if_absent("w", "__control", json.dumps(control).encode(), {"__ignition": json.dumps(ignition).encode()})
    return store


def test_c092_the_engine_manages_a_run_whose_classes_it_does_not_know(foreign, clock) -> None:
    engine = WorkflowEngine(foreign, clock=clock)
    snapshot = engine.inspect("w")
    assert snapshot is not None
    assert snapshot.start_event.name == "gone.Event"
    assert snapshot.interrupt is not None
    assert snapshot.interrupt.to_json()["eventName"] == "go"
    assert snapshot.interrupt.id == 1
    assert engine.abandon("w", "r", 1) is True
    assert engine.inspect("w") is None


@pytest.mark.parametrize("request_", [None, ExecutionRequest.start(run_id="q")])
def test_a_start_that_meets_a_request_of_an_unknown_class_is_refused_like_any_other(foreign, asking, request_) -> None:
    with pytest.raises(RunInFlightError, match="waits for #1"):
        asking().run(request_)


def test_a_run_whose_start_event_is_not_defined_here_cannot_be_continued_and_stays_as_it_is(foreign, asking) -> None:
    before = foreign.load("w")
    with pytest.raises(WorkflowError, match=r"gone\.Event"):
        asking().run(ExecutionRequest.resume(1))
    assert foreign.load("w") == before


def test_a_request_of_an_unknown_class_is_written_back_as_it_was(foreign, asking) -> None:
    foreign_control = json.loads(foreign.load("w")["__control"])
    failed = json.dumps({**foreign_control, "status": "failed"}).encode()
    foreign.write_if_unchanged("w", "__control", foreign.load("w")["__control"], {"__control": failed})

    asking().run(ExecutionRequest.resume())

    settled = json.loads(foreign.load("w")["__control"])
    assert settled["status"] == "suspended"
    assert settled["interrupt"] == foreign_control["interrupt"]
