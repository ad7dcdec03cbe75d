"""The engine on real servers: what the fakes cannot prove is that Lua, connections and threads of a real server agree."""

import contextlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from persistence import Persistence, RedisPersistence, UnreachableError
from persistence.redis import connect
from workflow import (
    Event,
    ExecutionRequest,
    ManualClock,
    RefusalReason,
    RunInFlightError,
    StartEvent,
    StopEvent,
    SystemClock,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    memoize,
)

pytestmark = pytest.mark.server

LEASE = 60
THREADS = 4
PATIENCE = 10.0
"""Seconds after which a thread that has not come fails its test."""


class Next(Event):
    pass


class Killed(BaseException):
    """Ends a process at one store operation."""


class Killable:
    """Hands calls on to a store until the n-th, at which the process dies before or after it; then to none any more."""

    def __init__(self, inner: Persistence, number: int, moment: str) -> None:
        self.inner, self.number, self.moment = inner, number, moment
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)

        def passed_on(*args: Any, **options: Any) -> Any:
            self.count += 1
            if self.count > self.number:
                raise UnreachableError("this process is dead")
            result = None if self.count == self.number and self.moment == "before" else call(*args, **options)
            if self.count == self.number:
                raise Killed
            return result

        return passed_on


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
def define(store, clock, effects):
    """Return what makes a workflow of three steps with two memos and a wait."""

    def make(persistence: Any = store, **options: Any) -> Workflow:
        def effect(name: str) -> str:
            effects[name] += 1
            return name

        def begin(event: StartEvent, state: WorkflowState) -> Next:
            state["first"] = memoize("effect", lambda: effect("first"))
            return Next()

        def ask(event: Next, state: WorkflowState) -> StopEvent:
            answer = await_event("go")
            return StopEvent([state["first"], answer, memoize("effect", lambda: effect("second"))])

        given = {"persistence": persistence, "clock": clock, "lease_timeout": LEASE, **options}
        return Workflow("w", nodes=[begin, ask], **given)

    return make


def test_a_run_suspends_is_answered_is_kept_and_is_forgotten(define, store) -> None:
    state = define(retain_completion=True).run()
    assert state.is_interrupted()
    assert [entry.status for entry in store.find()] == ["suspended"]
    fence = {"expected_run_id": state.execution.run_id, "expected_execution_attempt": 1, "expected_interrupt_id": 1}
    request = ExecutionRequest.resume({"ok": True}, **fence)
    assert define(retain_completion=True).run(request).execution.result == ["first", {"ok": True}, "second"]
    with pytest.raises(WorkflowRefusedError) as refused:
        define().run(request)
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    assert define().run(ExecutionRequest.resume()).execution.status is WorkflowStatus.COMPLETED
    define().acknowledge(state.execution.run_id)
    assert store.load("w") == {}
    assert store.find() == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_death_around_any_store_operation_is_recovered(define, store, clock, effects, moment) -> None:
    """Only a memo whose own write was lost is made again."""
    for number in range(1, 100):
        effects.clear()
        dying = Killable(store, number, moment)
        with contextlib.suppress(Killed):
            settle(define(dying))
        died = dying.count >= number
        clock.advance(LEASE + 1)
        ended = define().inspect() is None
        result = None if ended and (number, moment) != (1, "before") else settle(define(), recovering=not ended)
        assert result in (None, ["first", "yes", "second"])
        assert set(effects) == {"first", "second"}
        assert max(effects.values()) == 1 or (moment == "before" and effects.total() == 3)
        assert define().inspect() is None
        if not died:
            break
    assert not died


def settle(definition: Workflow, recovering: bool = False) -> Any:
    """Run or recover, answer, and return the result."""
    state = definition.run(ExecutionRequest.resume() if recovering else None)
    while state.is_interrupted():
        state = definition.run(ExecutionRequest.signal("go", "yes"))
    return state.execution.result


def test_of_many_threads_one_starts_and_one_is_heard(define, effects) -> None:
    for _ in range(10):
        effects.clear()
        states = [result for result in together(define().run) if isinstance(result, WorkflowState)]
        assert len(states) == 1
        run_id = states[0].execution.run_id
        answer = ExecutionRequest.resume(1, expected_run_id=run_id, expected_execution_attempt=1)
        results = together(lambda answer=answer: define(retain_completion=True).run(answer))
        assert sum(isinstance(result, WorkflowState) for result in results) == 1
        assert effects == {"first": 1, "second": 1}
        define().acknowledge(run_id)


def together(call: Any) -> list[Any]:
    """What the call returns, or its refusal, in each of several threads that make it at one moment."""
    barrier = threading.Barrier(THREADS)

    def at_once(_: int) -> Any:
        barrier.wait(PATIENCE)
        try:
            return call()
        except (RunInFlightError, WorkflowRefusedError) as refused:
            return refused

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(at_once, range(THREADS)))
