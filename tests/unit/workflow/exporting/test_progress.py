"""How far a run has come, read off its records."""

import threading
from typing import ClassVar

import pytest

from workflow import (
    ConcurrentBranchRunner,
    ConsoleExporter,
    Event,
    ExecutionRequest,
    Node,
    ParallelEvent,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowState,
    await_event,
    interrupt,
)
from workflow.exporting import Mark, Progress, read_progress


class Second(Event):
    pass


class Third(Event):
    pass


class Fork(ParallelEvent):
    declared_branches: ClassVar = {"a": Second, "b": Third}


def first(event: StartEvent, state: WorkflowState) -> Second:
    return Second()


def waiting(event: Second, state: WorkflowState) -> Third:
    await_event("go")
    return Third()


def last(event: Third, state: WorkflowState) -> StopEvent:
    return StopEvent()


def broken(event: Third, state: WorkflowState) -> StopEvent:
    raise RuntimeError("broken")


def test_without_a_run_there_is_no_progress(define):
    assert read_progress(define(first, waiting, last)) is None


def test_a_run_that_was_only_recorded_has_reached_nothing(define):
    workflow = define(first, waiting, last)
    workflow.ignite()
    assert read_progress(workflow) == Progress()


def test_a_run_that_waits_is_at_the_step_that_waits(define):
    workflow = define(first, waiting, last)
    workflow.run()
    assert read_progress(workflow) == Progress(done={"first"}, current={"waiting"})
    assert workflow.export(ConsoleExporter(read_progress(workflow))).splitlines()[:2] == [
        "StartEvent → ✓ first",
        "└─ Second → ▶ waiting",
    ]


def test_a_run_that_failed_shows_where(define):
    workflow = define(first, waiting, broken)
    workflow.run()
    with pytest.raises(RuntimeError):
        workflow.run(ExecutionRequest.signal("go"))
    assert read_progress(workflow) == Progress(done={"first", "waiting"}, failed={"broken"})


def answered(event: StartEvent, state: WorkflowState) -> StopEvent:
    await_event("go")
    raise RuntimeError("broken")


def test_a_run_whose_answered_step_failed_shows_that_step(define):
    workflow = define(answered)
    workflow.run()
    with pytest.raises(RuntimeError):
        workflow.run(ExecutionRequest.signal("go"))
    assert read_progress(workflow) == Progress(failed={"answered"})


def test_a_run_that_is_executed_shows_its_step(define):
    class Looking(Node):
        step_name = "looking"
        seen: Progress | None = None

        def __call__(self, event: StartEvent, state: WorkflowState) -> StopEvent:
            self.seen = read_progress(workflow)
            return StopEvent()

    node = Looking()
    workflow = define(node)
    workflow.run()
    assert node.seen == Progress(current={"looking"})


def test_a_run_that_is_kept_after_its_end_is_done_with_its_last_step(define):
    workflow = define(first, waiting, last, retain_completion=True)
    workflow.run()
    workflow.run(ExecutionRequest.signal("go"))
    assert read_progress(workflow) == Progress(done={"first", "waiting", "last"})


def test_a_run_that_was_cancelled_is_nowhere(define):
    workflow = define(first, waiting, last, retain_completion=True)
    workflow.run()
    workflow.cancel()
    assert read_progress(workflow) == Progress(done={"first"})


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({"a": Second(), "b": Third()})


def branch_a(event: Second, state: WorkflowState) -> StopEvent:
    return StopEvent(interrupt(WaitForEventRequest("go")))


def join(event: Fork, state: WorkflowState) -> Second | StopEvent:
    await_event("join")
    return StopEvent()


def test_behind_a_fork_the_branches_are_read(define):
    workflow = define(fork, branch_a, last, join)
    workflow.run()
    assert read_progress(workflow) == Progress(done={"fork"}, current={"branch_a"})

    workflow.run(ExecutionRequest.signal("go"))
    assert read_progress(workflow) == Progress(done={"fork", "branch_a", "last"}, current={"join"})


def test_a_run_that_begins_with_a_fork_is_read_too(define):
    workflow = define(branch_a, last, join, start_event=Fork({"a": Second(), "b": Third()}))
    workflow.run()
    assert read_progress(workflow) == Progress(current={"branch_a"})


def test_a_branch_that_failed_is_told_from_one_that_waits(define):
    both = threading.Barrier(2, timeout=20)

    class Waits(Node):
        step_name = "waits"

        def __call__(self, event: Second, state: WorkflowState) -> StopEvent:
            both.wait()
            return StopEvent(await_event("go"))

    class Fails(Node):
        step_name = "fails"

        def __call__(self, event: Third, state: WorkflowState) -> StopEvent:
            both.wait()
            raise RuntimeError("broken")

    workflow = define(fork, Waits(), Fails(), join, branch_runner=ConcurrentBranchRunner())
    with pytest.raises(RuntimeError):
        workflow.run()
    assert read_progress(workflow) == Progress(done={"fork"}, current={"waits"}, failed={"fails"})


def test_reading_progress_writes_nothing(define, store):
    workflow = define(first, waiting, last)
    workflow.run()
    store.forget()
    read_progress(workflow)
    assert store.names == ["load"]


def test_a_step_that_is_made_again_is_marked_by_where_it_stands_now():
    progress = Progress(done={"a", "b", "c"}, current={"b", "c"}, failed={"c"})
    assert [progress.mark(step) for step in ("a", "b", "c", "d", None)] == [Mark.DONE, Mark.CURRENT, Mark.FAILED, None, None]
