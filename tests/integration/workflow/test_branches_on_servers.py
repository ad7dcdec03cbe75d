"""Branches on real servers: many threads and tasks on one connection pool, waits that queue, deaths, and contenders."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from persistence import Persistence, RedisPersistence, UnreachableError
from persistence.redis import connect
from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    ManualClock,
    ParallelEvent,
    RefusalReason,
    StartEvent,
    StopEvent,
    SystemClock,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    amemoize,
    await_event,
    branch_id,
    memoize,
)

pytestmark = [pytest.mark.server, pytest.mark.timeout(60)]

LEASE = 60
PATIENCE = 10.0
"""Seconds after which a thread that has not come fails its test."""
ASKING = ("left", "right")


class Fork(ParallelEvent):
    pass


class Inner(ParallelEvent):
    pass


class Ask(Event):
    pass


class Nest(Event):
    pass


class Work(Event):
    number: int = 0


class Killed(BaseException):
    """Ends a process at one store operation."""


class Killable:
    """Hands calls on to a store until the n-th, at which the process dies before or after it; then to none any more."""

    def __init__(self, inner: Persistence, number: int, moment: str) -> None:
        self.inner, self.number, self.moment = inner, number, moment
        self.count = 0
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)

        def passed_on(*args: Any, **options: Any) -> Any:
            with self._lock:
                self.count += 1
                count = self.count
            if count > self.number:
                raise UnreachableError("this process is dead")
            result = None if count == self.number and self.moment == "before" else call(*args, **options)
            if count == self.number:
                raise Killed
            return result

        return passed_on


def plainly(definition: Workflow, request: ExecutionRequest | None = None) -> WorkflowState:
    return definition.run(request)


def on_a_loop(definition: Workflow, request: ExecutionRequest | None = None) -> WorkflowState:
    return asyncio.run(definition.aio.run(request))


@pytest.fixture(params=[plainly, on_a_loop], ids=["run", "aio"])
def run(request: pytest.FixtureRequest) -> Callable[..., WorkflowState]:
    """Return each way to run a definition."""
    return request.param


@pytest.fixture
def store(server_url) -> Persistence:
    """Return an empty store on each server."""
    return RedisPersistence(connect(server_url))


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that is moved by hand."""
    return ManualClock(SystemClock().now())


@pytest.fixture
def effects() -> Counter[str]:
    """Return how often each effect has happened."""
    return Counter()


@pytest.fixture
def define(store, clock, effects) -> Callable[..., Workflow]:
    """Return what makes a workflow with two branches that ask, and one that forks again into one plain and one async branch."""

    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        state["seen"] = ["fork"]
        return Fork({"left": Ask(), "right": Ask(), "nested": Nest()})

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        draft = memoize("draft", lambda: effects.update([branch_id() or ""]) or branch_id())
        return StopEvent([draft, await_event("go"), state["seen"]])

    def nest(event: Nest, state: WorkflowState) -> Inner:
        state["seen"] = [*state["seen"], "nest"]
        return Inner({"plain": Work(), "more": Work(number=1)})

    async def work(event: Work, state: WorkflowState) -> Work | StopEvent:
        async def effect() -> int:
            effects[f"{branch_id()} {event.number}"] += 1
            return event.number

        value = await amemoize("effect", effect)
        return Work(number=event.number + 1) if event.number < 2 else StopEvent([value, *state["seen"]])

    def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(event.results)

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent({**event.results, "state": state.all()})

    def make(persistence: Any = store, **options: Any) -> Workflow:
        given = {"clock": clock, "lease_timeout": LEASE, "branch_runner": ConcurrentBranchRunner(), **options}
        return Workflow("w", nodes=[fork, ask, nest, work, inner_join, join], persistence=persistence, **given)

    return make


def expected(answer: Any) -> dict[str, Any]:
    inner = [2, "fork", "nest"]
    asked = {name: [name, answer, ["fork"]] for name in ASKING}
    return {**asked, "nested": {"plain": inner, "more": inner}, "state": {"seen": ["fork"]}}


EFFECTS = {*ASKING, "plain 0", "plain 1", "plain 2", "more 1", "more 2"}


def settle(run: Callable[..., WorkflowState], definition: Workflow, first: ExecutionRequest | None = None) -> Any:
    """Run or recover, answer whatever is asked, and return the result."""
    state = run(definition, first)
    while state.is_interrupted():
        state = run(definition, ExecutionRequest.resume("yes", expected_interrupt_id=state.interrupt_request.id))
    return state.execution.result


def test_branches_run_wait_are_answered_and_leave_nothing_behind(define, run, store, effects) -> None:
    assert settle(run, define()) == expected("yes")
    assert effects == dict.fromkeys(EFFECTS, 1)
    assert store.load("w") == {}
    assert store.find() == []


def test_many_branches_write_through_one_pool_of_connections(store, run, clock) -> None:
    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({str(number): Work() for number in range(32)})

    def work(event: Work, state: WorkflowState) -> Work | StopEvent:
        total = state.get("total", 0) + memoize("number", lambda: event.number)
        state["total"] = total
        return Work(number=event.number + 1) if event.number < 5 else StopEvent(total)

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent(sum(event.results.values()))

    options = {"persistence": store, "clock": clock, "lease_timeout": LEASE, "branch_runner": ConcurrentBranchRunner()}
    assert run(Workflow("w", nodes=[fork, work, join], **options)).execution.result == 32 * 15


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_death_around_any_store_operation_of_branches_is_recovered(define, run, store, clock, effects, moment) -> None:
    """A death takes at most what each of the branches that ran had under way."""
    for number in range(2, 100):
        effects.clear()
        dying = Killable(store, number, moment)
        with contextlib.suppress(Killed, UnreachableError):
            settle(run, define(dying))
        died = dying.count >= number
        clock.advance(LEASE + 1)
        if define().inspect() is not None:
            assert settle(run, define(), ExecutionRequest.resume()) == expected("yes")
        assert set(effects) == EFFECTS
        assert effects.total() <= len(EFFECTS) + 4
        assert define().inspect() is None
        if not died:
            break
    assert not died


def test_of_many_who_answer_each_question_one_is_heard(define, effects) -> None:
    for _ in range(5):
        effects.clear()
        state = define(retain_completion=True).run()
        heard = []
        while state.is_interrupted():
            fence = {
                "expected_run_id": state.execution.run_id,
                "expected_execution_attempt": state.execution.attempt,
                "expected_interrupt_id": state.interrupt_request.id,
            }
            results = together(*(lambda number=number, fence=fence: answer(define, number, fence) for number in range(4)))
            (state,) = [result for result in results if isinstance(result, WorkflowState)]
            heard.append([result for result in results if isinstance(result, RefusalReason)])
        assert heard == [[RefusalReason.STALE_ATTEMPT] * 3] * 2
        assert effects == dict.fromkeys(EFFECTS, 1)
        define().acknowledge(state.execution.run_id)


def answer(define: Callable[..., Workflow], payload: int, fence: dict[str, Any]) -> WorkflowState | RefusalReason:
    try:
        return define(retain_completion=True).run(ExecutionRequest.resume(payload, **fence))
    except WorkflowRefusedError as refused:
        return refused.reason


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returns, all made at one moment in threads of their own."""
    barrier = threading.Barrier(len(calls))

    def at_once(call: Callable[[], Any]) -> Any:
        barrier.wait(PATIENCE)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(at_once, calls))
