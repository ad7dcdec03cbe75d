"""The concurrent runner: branches side by side in threads and on the loop, their limit, and how they come to a stop."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from workflow import (
    ConcurrentBranchRunner,
    Event,
    GraphError,
    Node,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
    amemoize,
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
