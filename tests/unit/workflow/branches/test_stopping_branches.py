"""How branches that run at once come to a stop: errors, Ctrl-C, cancelled tasks."""

import asyncio
import gc
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    ParallelEvent,
    StartEvent,
    StopEvent,
    WorkflowState,
    WorkflowStatus,
    await_event,
    branch_id,
    memoize,
)

NAMES = ("a", "b", "c", "d")


class Fork(ParallelEvent):
    pass


class Work(Event):
    number: int = 0


class Other(Event):
    pass


class Then(Event):
    pass


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({name: Work() for name in NAMES})


def two(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({"a": Work(), "b": Other()})


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


class Watched(ConcurrentBranchRunner):
    """Says whether no node may begin any more."""

    def is_pausing(self) -> bool:
        return self.branches[0].is_pausing()

    async def run(self, branches: Any, host: Any) -> None:
        object.__setattr__(self, "branches", branches)
        await super().run(branches, host)


@pytest.fixture
def watched() -> Watched:
    """Return a concurrent runner that can be asked."""
    return Watched()


# --- failures ---------------------------------------------------------------------------------------------------------------


class FirstError(Exception):
    pass


class SecondError(Exception):
    pass


def test_c182_the_first_error_in_time_is_raised_once_all_have_come_to_a_stop(concurrent, run, gates) -> None:
    def work(event: Work, state: WorkflowState) -> StopEvent:
        gates.wait("b failed")
        gates.open("a failed")
        raise SecondError

    def other(event: Other, state: WorkflowState) -> StopEvent:
        gates.open("b failed")
        raise FirstError

    before = threading.active_count()
    with pytest.raises(FirstError):
        run(concurrent(two, work, other, join))
    assert gates.is_open("a failed")
    seen = concurrent().inspect()
    assert (seen.status, seen.failure.error) == (WorkflowStatus.FAILED, "FirstError")
    assert threading.active_count() <= before + 5


def test_after_a_failure_a_running_node_is_finished_and_recorded_and_no_other_begins(
    concurrent, run, gates, until, watched, fail_once, trip
) -> None:
    ran: list[str] = []

    def work(event: Work, state: WorkflowState) -> StopEvent:
        gates.wait("b runs")
        fail_once()
        return StopEvent("a")

    def other(event: Other, state: WorkflowState) -> Then:
        gates.open("b runs")
        until(watched.is_pausing)
        memoize("memo", lambda: ran.append("b"))
        return Then()

    def end(event: Then, state: WorkflowState) -> StopEvent:
        ran.append("end")
        return StopEvent("b")

    definition = concurrent(two, work, other, end, join, branch_runner=watched)
    with pytest.raises(trip):
        run(definition)
    assert ran == ["b"]
    assert run(definition).execution.result == {"a": "a", "b": "b"}
    assert ran == ["b", "end"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, BaseException])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_whatever_a_node_in_a_branch_raises_fails_the_run_after_the_others_are_done(
    concurrent, run, gates, error, kind
) -> None:
    def plain(event: Work, state: WorkflowState) -> StopEvent:
        gates.wait("b runs")
        gates.open("raised")
        raise error

    async def asynchronous(event: Work, state: WorkflowState) -> StopEvent:
        await gates.passed("b runs")
        gates.open("raised")
        raise error

    def other(event: Other, state: WorkflowState) -> StopEvent:
        gates.open("b runs")
        gates.wait("raised")
        memoize("memo", lambda: gates.open("done"))
        return StopEvent()

    with pytest.raises(error):
        run(concurrent(two, plain if kind == "plain" else asynchronous, other, join))
    assert gates.is_open("done")
    assert concurrent().inspect().status is WorkflowStatus.FAILED


def test_an_async_node_that_ends_its_program_does_not_end_the_loop_of_others(define) -> None:
    async def leave(event: StartEvent, state: WorkflowState) -> StopEvent:
        raise SystemExit(3)

    async def stay(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent("here")

    with pytest.raises(SystemExit):
        define(leave).run()
    assert define(stay, workflow_id="other").run().execution.result == "here"


def test_ctrl_c_stops_all_branches_after_their_running_nodes(concurrent, gates, until, watched, monkeypatch) -> None:
    """It reaches the thread that waits for them, at whatever moment."""
    began: list[Any] = []

    def work(event: Work, state: WorkflowState) -> Work | StopEvent:
        began.append((branch_id(), event.number))
        if event.number == 0:
            gates.open(branch_id())
            until(watched.is_pausing)
        return Work(number=event.number + 1) if event.number < 3 else StopEvent(branch_id())

    def pressed(waiting: Future[Any], timeout: float | None = None) -> None:
        for name in NAMES:
            gates.wait(name)
        raise KeyboardInterrupt

    definition = concurrent(fork, work, join, branch_runner=watched)
    monkeypatch.setattr(Future, "result", pressed)
    with pytest.raises(KeyboardInterrupt):
        definition.run()
    monkeypatch.undo()
    assert sorted(began) == [(name, 0) for name in NAMES]
    assert definition.inspect().status is WorkflowStatus.FAILED
    assert concurrent(fork, work, join).run().execution.result == {name: name for name in NAMES}
    assert len(began) == 4 * len(NAMES)


# --- cancelled tasks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1, 2])
def test_a_cancelled_task_leaves_no_branch_behind_and_its_run_recovers(concurrent, gates, limit) -> None:
    slow = [True]

    async def work(event: Work, state: WorkflowState) -> StopEvent:
        gates.open("runs")
        if slow:
            await asyncio.sleep(3600)
        return StopEvent(branch_id())

    definition = concurrent(fork, work, join, branch_runner=ConcurrentBranchRunner(limit))

    async def main() -> None:
        running = asyncio.create_task(definition.aio.run())
        await gates.passed("runs")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    gc.collect()  # a coroutine that was never awaited would complain here
    assert definition.inspect().status is WorkflowStatus.FAILED
    slow.clear()
    assert definition.run().execution.result == {name: name for name in NAMES}


def test_a_cancelled_task_waits_for_the_write_of_a_branch_that_is_under_way(concurrent, store, gates) -> None:
    async def work(event: Work, state: WorkflowState) -> StopEvent:
        return StopEvent(1)

    async def other(event: Other, state: WorkflowState) -> StopEvent:
        await asyncio.sleep(3600)
        return StopEvent(2)

    definition = concurrent(two, work, other, join)

    def slow(call: Any) -> None:
        if any("work-0" in key for key in call.records):
            gates.open("writing")
            gates.wait("go")

    store.before = slow

    async def main() -> None:
        running = asyncio.create_task(definition.aio.run())
        await gates.passed("writing")
        running.cancel()
        await asyncio.sleep(0)
        gates.open("go")
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert any("work-0" in key for key in store.load("w"))
    assert definition.inspect().status is WorkflowStatus.FAILED


def test_a_cancelled_task_whose_branch_waits_too_is_shown_waiting(concurrent, until, gates) -> None:
    def work(event: Work, state: WorkflowState) -> StopEvent:
        gates.wait("b runs")
        return StopEvent(await_event("a"))

    async def other(event: Other, state: WorkflowState) -> StopEvent:
        gates.open("b runs")
        if not gates.is_open("cancelled"):
            await asyncio.sleep(3600)
        return StopEvent(2)

    definition = concurrent(two, work, other, join)

    async def main() -> None:
        running = asyncio.create_task(definition.aio.run())
        await asyncio.to_thread(until, lambda: definition.inspect() and definition.inspect().interrupt)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    gates.open("cancelled")
    assert definition.run().is_interrupted()
    assert definition.run(ExecutionRequest.signal("a", 1)).execution.result == {"a": 1, "b": 2}
