"""An answer is recorded by somebody who does not execute the run, and whoever continues it finds the answer there."""

import threading

import pytest

from workflow import (
    ApprovalRequest,
    Event,
    ExecutionRequest,
    RefusalReason,
    StartEvent,
    StopEvent,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    interrupt,
    sleep_until,
)
from workflow.history import HISTORY_LOG, read_line
from workflow.index import HINT_DELAY, make_due, postpone


class Second(Event):
    first: str


@pytest.fixture
def asking(define):
    """Return a workflow that asks two questions, one after the other, and fails once behind each where it is told to."""

    def make(*errors: Exception, **options):
        failures = list(errors)

        def ask(event: StartEvent, state: WorkflowState) -> Second:
            answer = await_event("go")
            if failures:
                raise failures.pop(0)
            return Second(first=str(answer))

        def ask_again(event: Second, state: WorkflowState) -> StopEvent:
            return StopEvent(f"{event.first}, {await_event('go')}")

        return define(ask, ask_again, history=True, **options)

    return make


def question(workflow) -> dict[str, object]:
    """What an answer names: the run and the interruption that are shown now."""
    shown = workflow.inspect()
    return {"expected_run_id": shown.run_id, "expected_interrupt_id": shown.interrupt.id}


def test_an_answer_is_recorded_and_the_run_is_due_but_not_executed(asking, store, clock, inner) -> None:
    workflow = asking()
    workflow.run()
    assert store.entry("w").due is None

    assert workflow.deliver(ExecutionRequest.resume("yes", **question(workflow)))

    shown = workflow.inspect()
    assert (shown.status, shown.input_accepted, shown.execution_attempt) == (WorkflowStatus.SUSPENDED, True, 1)
    assert store.entry("w").due == clock.now().timestamp() + HINT_DELAY
    told = [read_line(entry).kind.value for entry in inner.read_log(HISTORY_LOG)]
    assert told == ["started", "suspended", "answered"]


def test_a_resume_without_payload_executes_the_run_with_the_recorded_answer(asking) -> None:
    workflow = asking()
    workflow.run()
    workflow.deliver(ExecutionRequest.signal("go", "yes"))
    workflow.run(ExecutionRequest.resume())
    workflow.deliver(ExecutionRequest.signal("go", "no"))
    assert workflow.run(ExecutionRequest.resume()).execution.result == "yes, no"


def test_the_engine_delivers_without_the_class_of_the_workflow(asking, inner, clock) -> None:
    workflow = asking()
    workflow.run()
    assert WorkflowEngine(inner, clock=clock).deliver("w", ExecutionRequest.signal("go", 1))
    assert workflow.run(ExecutionRequest.resume()).execution.status is WorkflowStatus.SUSPENDED


def test_a_second_click_on_the_first_question_never_answers_the_second(asking) -> None:
    workflow = asking()
    workflow.run()
    click = ExecutionRequest.resume("yes", **question(workflow))
    workflow.deliver(click)
    workflow.run(ExecutionRequest.resume())

    with pytest.raises(WorkflowRefusedError) as refusal:
        workflow.deliver(click)

    assert refusal.value.reason is RefusalReason.NOT_AWAITED
    assert workflow.inspect().interrupt.id == 2
    assert not workflow.inspect().input_accepted


def test_the_same_answer_again_changes_nothing_and_another_is_refused(asking, store) -> None:
    workflow = asking()
    workflow.run()
    asked = question(workflow)
    workflow.deliver(ExecutionRequest.resume({"a": 1, "b": 2}, **asked))
    writes = len(store.writes)

    assert not workflow.deliver(ExecutionRequest.resume({"b": 2, "a": 1}, **asked))
    with pytest.raises(WorkflowRefusedError, match="cannot be changed"):
        workflow.deliver(ExecutionRequest.resume({"a": 2}, **asked))

    assert len(store.writes) == writes


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (ExecutionRequest.signal("stop", 1), RefusalReason.NOT_AWAITED),
        (ExecutionRequest.resume(1, expected_run_id="another"), RefusalReason.STALE_RUN),
        (ExecutionRequest.resume(1, expected_execution_attempt=9), RefusalReason.STALE_ATTEMPT),
        (ExecutionRequest.resume(1, expected_interrupt_id=9), RefusalReason.NOT_AWAITED),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(asking, store, request_, reason) -> None:
    workflow = asking()
    workflow.run()
    writes = len(store.writes)
    with pytest.raises(WorkflowRefusedError) as refusal:
        workflow.deliver(request_)
    assert refusal.value.reason is reason
    assert len(store.writes) == writes


@pytest.mark.parametrize("request_", [ExecutionRequest.start(), ExecutionRequest.resume()])
def test_a_request_without_an_answer_cannot_be_delivered(asking, request_) -> None:
    workflow = asking()
    workflow.run()
    with pytest.raises(WorkflowError, match="brings no answer"):
        workflow.deliver(request_)


def test_a_run_that_has_ended_takes_no_answer(asking, define) -> None:
    workflow = asking(retain_completion=True)
    with pytest.raises(WorkflowRefusedError, match="no run"):
        workflow.deliver(ExecutionRequest.resume(1))
    workflow.run()
    workflow.cancel()
    with pytest.raises(WorkflowRefusedError, match="cancelled"):
        workflow.deliver(ExecutionRequest.resume(1))


def test_a_kept_result_takes_no_answer(define) -> None:
    def end(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    workflow = define(end, retain_completion=True)
    workflow.run()
    with pytest.raises(WorkflowRefusedError, match="waits for nothing"):
        workflow.deliver(ExecutionRequest.resume(1))


def test_a_sleeping_run_takes_no_answer(define, clock) -> None:
    def sleep(event: StartEvent, state: WorkflowState) -> StopEvent:
        sleep_until(clock.now().replace(year=2030))
        return StopEvent()

    workflow = define(sleep)
    workflow.run()
    with pytest.raises(WorkflowRefusedError, match="sleeps until"):
        workflow.deliver(ExecutionRequest.resume(1))


def test_an_answer_to_a_running_segment_is_refused(asking, clock) -> None:
    workflow = asking(lease_timeout=60)
    workflow.run()
    waiting = question(workflow)
    workflow.deliver(ExecutionRequest.resume("yes", **waiting))
    refusals = []

    def peek(event: StartEvent, state: WorkflowState) -> Second:
        with pytest.raises(WorkflowRefusedError) as refusal:
            workflow.deliver(ExecutionRequest.resume("no", **waiting))
        refusals.append(refusal.value.reason)
        return Second(first=str(await_event("go")))

    peek.__name__, peek.__qualname__ = "ask", workflow._nodes[0].__qualname__
    workflow.reconfigure(nodes=[peek, workflow._nodes[1]]).run(ExecutionRequest.resume())
    assert refusals == [RefusalReason.EXECUTING]


def test_a_failed_run_keeps_its_accepted_answer_and_takes_none_beside_it(asking) -> None:
    workflow = asking(ValueError("broken"))
    workflow.run()
    asked = question(workflow)
    workflow.deliver(ExecutionRequest.resume("yes", **asked))
    with pytest.raises(ValueError, match="broken"):
        workflow.run(ExecutionRequest.resume())

    with pytest.raises(WorkflowRefusedError, match="cannot be changed"):
        workflow.deliver(ExecutionRequest.resume("no", **asked))

    assert workflow.run(ExecutionRequest.resume()).execution.status is WorkflowStatus.SUSPENDED


def test_of_two_different_answers_at_once_one_is_accepted(asking, store) -> None:
    workflow = asking()
    workflow.run()
    asked = question(workflow)
    outcomes = []

    def first_then_second(call) -> None:
        # The other answer comes between this one's look and its write.
        if call.name == "write_if_unchanged" and not outcomes:
            outcomes.append("other")
            workflow.deliver(ExecutionRequest.resume("other", **asked))

    store.before = first_then_second
    with pytest.raises(WorkflowRefusedError, match="cannot be changed"):
        workflow.deliver(ExecutionRequest.resume("mine", **asked))
    assert workflow.run(ExecutionRequest.resume()).execution.status is WorkflowStatus.SUSPENDED


def test_an_answer_that_meets_a_change_of_the_run_looks_again(asking, store, clock) -> None:
    workflow = asking()
    workflow.run()
    asked = question(workflow)
    met = []

    def someone_cancels(call) -> None:
        if call.name == "write_if_unchanged" and not met:
            met.append(call)
            WorkflowEngine(store.inner, clock=clock).cancel("w", retain=True)

    store.before = someone_cancels
    with pytest.raises(WorkflowRefusedError) as refusal:
        workflow.deliver(ExecutionRequest.resume("yes", **asked))
    assert refusal.value.reason is RefusalReason.CANCELLED


def test_an_answer_is_accepted_once_by_many_threads(asking) -> None:
    workflow = asking()
    workflow.run()
    asked = question(workflow)
    accepted: list[bool] = []

    def click() -> None:
        accepted.append(workflow.deliver(ExecutionRequest.resume("yes", **asked)))

    threads = [threading.Thread(target=click) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(accepted) == [False] * 7 + [True]


def test_a_lost_reply_is_found_to_have_been_accepted(asking, store) -> None:
    workflow = asking()
    workflow.run()
    request = ExecutionRequest.resume("yes", **question(workflow))
    before = len(store.calls)
    store.lose_reply_of(before + 1)
    with pytest.raises(Exception, match="lost"):
        workflow.deliver(request)
    assert not workflow.deliver(request)
    assert workflow.inspect().input_accepted


def test_the_sweeper_finds_an_answered_run_whose_hint_was_lost(asking, store, clock) -> None:
    workflow = asking()
    workflow.run()
    workflow.deliver(ExecutionRequest.resume("yes"))
    clock.advance(HINT_DELAY)
    now = clock.now().timestamp()
    assert [entry.partition for entry in store.due(now)] == ["w"]
    assert postpone(store, "w", now) is not None


def test_the_own_check_of_a_request_refuses_an_answer(define) -> None:
    class Votes(ApprovalRequest):
        def validate_input(self, kind, payload, now):
            super().validate_input(kind, payload, now)
            if payload not in ("yes", "no"):
                raise ValueError("the vote is yes or no")

    def vote(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(Votes("bread?")))

    workflow = define(vote)
    workflow.run()
    with pytest.raises(WorkflowRefusedError, match="the vote is yes or no"):
        workflow.deliver(ExecutionRequest.resume("maybe"))
    assert workflow.deliver(ExecutionRequest.signal("approval", "yes"))


def test_a_kept_result_is_not_made_due(define, store, clock) -> None:
    """Being due, it would be forgotten."""

    def end(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    workflow = define(end, retain_for=3600)
    run_id = workflow.run().execution.run_id
    kept_until = store.entry("w").due
    assert make_due(store, "w", run_id, clock.now().timestamp()) is None
    assert store.entry("w").due == kept_until
