"""The concurrent runner: branches side by side in threads and on the loop, their limit, and how they come to a stop."""

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any

import pytest

from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    GraphError,
    Node,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    branch_id,
    idempotency_key,
    memoize,
    recall_memo,
)

NAMES = ("a", "b", "c", "d")


class Fork(ParallelEvent):
    pass


class Inner(ParallelEvent):
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


class Crowd:
    """Counts who is inside at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside = self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


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


@pytest.fixture
def meet(gates) -> Callable[[], None]:
    """Return what lets nobody pass until every branch of `fork` has come."""

    def wait() -> None:
        gates.open(branch_id())
        for name in NAMES:
            gates.wait(name)

    return wait


# --- at once ----------------------------------------------------------------------------------------------------------------


def test_c179_plain_nodes_of_all_branches_run_at_once_in_threads_of_their_own(concurrent, run, meet) -> None:
    threads: set[int] = set()

    def work(event: Work, state: WorkflowState) -> StopEvent:
        threads.add(threading.get_ident())
        meet()
        return StopEvent(branch_id())

    assert run(concurrent(fork, work, join)).execution.result == {name: name for name in NAMES}
    assert len(threads) == len(NAMES)


def test_c179_async_nodes_of_all_branches_run_at_once_on_one_loop(concurrent, run) -> None:
    loops: set[int] = set()
    arrived: list[Any] = []

    async def work(event: Work, state: WorkflowState) -> StopEvent:
        loops.add(id(asyncio.get_running_loop()))
        arrived.append(branch_id())
        while len(arrived) < len(NAMES):
            await asyncio.sleep(0)
        return StopEvent(branch_id())

    assert run(concurrent(fork, work, join)).execution.result == {name: name for name in NAMES}
    assert len(loops) == 1


def test_plain_and_async_nodes_run_at_once(concurrent, run, gates) -> None:
    def work(event: Work, state: WorkflowState) -> StopEvent:
        gates.open("plain")
        gates.wait("async")
        return StopEvent(1)

    async def other(event: Other, state: WorkflowState) -> StopEvent:
        gates.open("async")
        await gates.passed("plain")
        return StopEvent(2)

    assert run(concurrent(two, work, other, join)).execution.result == {"a": 1, "b": 2}


def test_nested_branches_run_at_once_with_those_outside(concurrent, run, gates) -> None:
    def nest(event: Work, state: WorkflowState) -> Inner:
        return Inner({"x": Then(), "y": Then()})

    def deep(event: Then, state: WorkflowState) -> StopEvent:
        name = branch_id()
        gates.open(name)
        for other in ("x", "y", "b"):
            gates.wait(other)
        return StopEvent(name)

    def other(event: Other, state: WorkflowState) -> StopEvent:
        gates.open("b")
        gates.wait("x")
        gates.wait("y")
        return StopEvent("b")

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(event.results)

    assert run(concurrent(two, nest, deep, other, inner_join, join)).execution.result == {"a": {"x": "x", "y": "y"}, "b": "b"}


def test_the_sequential_runner_runs_one_after_the_other(define, run) -> None:
    crowd, order = Crowd(), []

    def work(event: Work, state: WorkflowState) -> Work | StopEvent:
        with crowd:
            order.append(branch_id())
        return Work(number=1) if event.number == 0 else StopEvent()

    run(define(fork, work, join))
    assert crowd.most == 1
    assert order == [name for name in NAMES for _ in range(2)]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_more_branches_run_at_once_than_the_limit_allows(define, run, gates, limit) -> None:
    crowd = Crowd()

    def work(event: Work, state: WorkflowState) -> StopEvent:
        with crowd:
            if crowd.inside == limit:
                gates.open("full")
            gates.wait("full")
        return StopEvent(branch_id())

    definition = define(fork, work, join, branch_runner=ConcurrentBranchRunner(limit=limit))
    assert run(definition).execution.result == {name: name for name in NAMES}
    assert crowd.most == limit


@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_holds_for_each_fork_so_that_nested_ones_cannot_block_each_other(define, run, limit) -> None:
    def nest(event: Work, state: WorkflowState) -> Inner:
        return Inner({"x": Then(), "y": Then(), "z": Then()})

    def deep(event: Then, state: WorkflowState) -> StopEvent:
        return StopEvent(branch_id())

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(event.results)

    definition = define(fork, nest, deep, inner_join, join, branch_runner=ConcurrentBranchRunner(limit))
    assert run(definition).execution.result == {name: {x: x for x in "xyz"} for name in NAMES}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit) -> None:
    with pytest.raises(GraphError, match="limit"):
        ConcurrentBranchRunner(limit)


def test_many_branches_and_rounds_end_well(define, run) -> None:
    """Deadlocks show in numbers."""

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({str(number): Work() for number in range(40)})

    def work(event: Work, state: WorkflowState) -> Work | StopEvent:
        state["sum"] = state.get("sum", 0) + memoize("number", lambda: event.number)
        return Work(number=event.number + 1) if event.number < 5 else StopEvent(state["sum"])

    definition = define(split, work, join, branch_runner=ConcurrentBranchRunner(limit=7))
    assert run(definition).execution.result == {str(number): 15 for number in range(40)}


# --- the runner of a definition ---------------------------------------------------------------------------------------------


def test_c194_the_constructors_runner_wins_over_the_hook_and_the_default_is_sequential(define) -> None:
    class Hooked(Workflow):
        def branch_runner(self) -> ConcurrentBranchRunner:
            return ConcurrentBranchRunner()

    def most(cls: type[Workflow], **options: Any) -> int:
        crowd, barrier = Crowd(), threading.Barrier(2)

        def work(event: Work, state: WorkflowState) -> StopEvent:
            with crowd:
                if options.get("meets"):
                    barrier.wait(10)
            return StopEvent()

        def pair(event: StartEvent, state: WorkflowState) -> Fork:
            return Fork({"a": Work(), "b": Work()})

        given = {name: value for name, value in options.items() if name != "meets"}
        define(pair, work, join, cls=cls, **given).run()
        return crowd.most

    assert most(Workflow) == 1
    assert most(Hooked, meets=True) == 2
    assert most(Hooked, branch_runner=SequentialBranchRunner()) == 1
    assert most(Workflow, branch_runner=ConcurrentBranchRunner(), meets=True) == 2


# --- contexts ---------------------------------------------------------------------------------------------------------------


def test_one_node_object_serves_all_branches_at_once_without_mixing_them_up(concurrent, run, meet, gates) -> None:
    class One(Node):
        def __call__(self, event: Work, state: WorkflowState) -> StopEvent:
            name = self.branch_id()
            meet()
            first = self.memoize("memo", lambda: name)
            gates.open((name, "memo"))
            for other in NAMES:
                gates.wait((other, "memo"))
            return StopEvent([self.branch_id(), first, self.recall_memo("memo"), self.idempotency_key("key")])

    results = run(concurrent(fork, One(), join)).execution.result
    assert {name: result[:3] for name, result in results.items()} == {name: [name, name, name] for name in NAMES}
    assert len({result[3] for result in results.values()}) == len(NAMES)


def test_one_async_node_object_serves_all_branches_at_once_without_mixing_them_up(concurrent, run) -> None:
    arrived: list[Any] = []

    async def value(name: Any) -> Any:
        arrived.append(name)
        while len(arrived) < len(NAMES):
            await asyncio.sleep(0)
        return [name, branch_id()]

    async def work(event: Work, state: WorkflowState) -> StopEvent:
        name = branch_id()
        memo = await amemoize("memo", lambda: value(name))
        return StopEvent([branch_id(), memo, recall_memo("memo"), idempotency_key("key")])

    results = run(concurrent(fork, work, join)).execution.result
    assert {name: result[:3] for name, result in results.items()} == {name: [name, [name] * 2, [name] * 2] for name in NAMES}
    assert len({result[3] for result in results.values()}) == len(NAMES)


def test_branches_run_in_copies_of_the_callers_context(concurrent, run, meet) -> None:
    asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")

    def work(event: Work, state: WorkflowState) -> StopEvent:
        before = asked_by.get()
        asked_by.set(f"{before} in {branch_id()}")
        meet()
        return StopEvent(asked_by.get())

    token = asked_by.set("me")
    try:
        assert run(concurrent(fork, work, join)).execution.result == {name: f"me in {name}" for name in NAMES}
        assert asked_by.get() == "me"
    finally:
        asked_by.reset(token)


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
