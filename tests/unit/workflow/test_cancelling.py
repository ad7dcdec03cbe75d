"""Ending a run from outside, wherever it stands, also while somebody executes it."""

import asyncio
import json
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    InterruptRequest,
    RefusalReason,
    StaleRunError,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowEngine,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    interrupt,
    memoize,
)
from workflow.context import current_step
from workflow.index import RunSummary

PATIENCE = 10.0
"""Seconds after which a thread that has not come fails its test."""


class Next(Event):
    pass


class OwnError(Exception):
    """What a node raises by itself."""


def reason_of(call: Callable[[], Any]) -> RefusalReason:
    """The reason of a refusal."""
    with pytest.raises(WorkflowRefusedError) as refused:
        call()
    return refused.value.reason


# --- runs that nobody executes ----------------------------------------------------------------------------------------------


@pytest.fixture
def idle(define, fail_once, trip):
    """Return what leaves a run that nobody executes, and its definition."""

    def make(state: str, **options: Any):
        def work(event: StartEvent, state_: WorkflowState) -> StopEvent:
            if state == "failed":
                fail_once("work")
            return StopEvent(await_event("go"))

        definition = define(work, **options)
        match state:
            case "pending":
                definition.ignite(run_id="r")
            case "failed":
                with pytest.raises(trip):
                    definition.run(ExecutionRequest.start(run_id="r"))
            case _:
                definition.run(ExecutionRequest.start(run_id="r"))
        return definition

    return make


IDLE = ["pending", "suspended", "failed"]


@pytest.mark.parametrize("state", IDLE)
@pytest.mark.parametrize("named", [None, "r"])
def test_a_run_that_nobody_executes_is_deleted_at_once(idle, store, state, named) -> None:
    definition = idle(state)
    assert definition.cancel(named) is True
    assert (store.load("w"), store.entry("w"), store.find()) == ({}, None, [])
    assert definition.cancel() is False
    assert definition.run().execution.attempt == 1


@pytest.mark.parametrize("state", IDLE)
def test_a_retained_cancellation_stays_until_it_is_acknowledged(idle, store, state) -> None:
    definition = idle(state, retain_completion=True)
    assert definition.cancel("r") is True
    seen = definition.inspect()
    assert (seen.status, seen.interrupt, seen.failure, seen.lease_expires_at) == (WorkflowStatus.CANCELLED, None, None, None)
    assert (store.entry("w").status, store.entry("w").due) == ("cancelled", None)
    definition.acknowledge("r")
    assert store.load("w") == {}


@pytest.mark.parametrize("state", IDLE)
def test_cancelling_again_changes_nothing(idle, store, state) -> None:
    definition = idle(state, retain_completion=True)
    definition.cancel()
    before = store.load("w")
    store.forget()
    assert definition.cancel() is definition.cancel("r") is True
    assert (store.writes, store.load("w")) == ([], before)


def test_every_other_request_meets_the_cancellation(idle, store) -> None:
    definition = idle("suspended", retain_completion=True)
    definition.cancel()
    before = store.load("w")
    for request in (
        ExecutionRequest.resume(),
        ExecutionRequest.resume(1),
        ExecutionRequest.signal("go"),
        ExecutionRequest.resume(1, expected_run_id="r", expected_execution_attempt=1),
        None,
        ExecutionRequest.start(),
        ExecutionRequest.start(run_id="r", recover_failed=True),
    ):
        assert reason_of(lambda request=request: definition.run(request)) is RefusalReason.CANCELLED
    with pytest.raises(StaleRunError):
        definition.run(ExecutionRequest.resume(expected_run_id="other"))
    assert store.load("w") == before
    assert definition.abandon() is True
    assert store.load("w") == {}


def test_nothing_another_run_and_a_completed_one_are_not_cancelled(idle, store) -> None:
    definition = idle("suspended", retain_completion=True)
    before = store.load("w")
    assert reason_of(lambda: definition.cancel("other")) is RefusalReason.STALE_RUN
    assert store.load("w") == before
    definition.run(ExecutionRequest.resume(1))
    before = store.load("w")
    assert reason_of(definition.cancel) is RefusalReason.COMPLETED
    assert store.load("w") == before
    definition.acknowledge("r")
    assert reason_of(lambda: definition.cancel("r")) is RefusalReason.STALE_RUN
    assert definition.cancel() is False


@pytest.mark.parametrize("how", ["definition", "engine"])
def test_retain_for_says_when_a_cancelled_run_may_go(idle, store, clock, how) -> None:
    definition = idle("suspended", retain_for=3600 if how == "definition" else None)
    if how == "definition":
        definition.cancel()
    else:
        WorkflowEngine(store, clock=clock).cancel("w", retain_for=3600)
    assert definition.inspect().status is WorkflowStatus.CANCELLED
    assert store.entry("w").due == clock.now().timestamp() + 3600


def test_a_request_whose_class_nobody_defines_does_not_stand_in_the_way(define, store, clock) -> None:
    class Forgotten(WaitForEventRequest):
        pass

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        request: InterruptRequest = Forgotten("go")
        return StopEvent(interrupt(request))

    for retain in (True, False):
        define(ask).run()
        control = store.load("w")["__control"]
        renamed = control.replace(b"Forgotten", b"NeverDefined")
        assert store.write_if_unchanged("w", "__control", control, {"__control": renamed})
        assert WorkflowEngine(store, clock=clock).cancel("w", retain=retain) is True
        define().abandon()
        assert store.load("w") == {}


# --- runs that somebody executes --------------------------------------------------------------------------------------------


class Owner:
    """A run whose node has begun in another thread and waits to be told to go on."""

    def __init__(
        self, pool: ThreadPoolExecutor, begun: threading.Event, go_on: threading.Event, run: Callable[[], Any]
    ) -> None:
        self._go_on = go_on
        self._result: Future[Any] = pool.submit(run)
        assert begun.wait(PATIENCE)

    def ends(self) -> Any:
        """Let the node go on and return what the call returned or raised."""
        self._go_on.set()
        error = self._result.exception(PATIENCE)
        return self._result.result() if error is None else error


@pytest.fixture
def executed(define):
    """Return what starts a run whose node does one thing once its run has been cancelled."""
    pool = ThreadPoolExecutor(1)
    go_on = threading.Event()

    def make(then: str = "returns", *, call: str = "run", **options: Any):
        begun = threading.Event()
        go_on.clear()

        def work(event: StartEvent, state: WorkflowState) -> Next | StopEvent:
            begun.set()
            assert go_on.wait(PATIENCE)
            match then:
                case "memoizes":
                    memoize("late", lambda: 1)
                case "waits":
                    await_event("go")
                case "raises":
                    raise OwnError
                case "renews":
                    assert current_step("the test").store.renew() is False
            return StopEvent() if then == "ends" else Next()

        def end(event: Next, state: WorkflowState) -> StopEvent:
            raise AssertionError("a node ran after its run had been cancelled")

        definition = define(work, end, **options)
        start = ExecutionRequest.start(run_id="r")
        run = (lambda: definition.run(start)) if call == "run" else (lambda: asyncio.run(definition.aio.run(start)))
        return definition, Owner(pool, begun, go_on, run)

    yield make
    go_on.set()
    pool.shutdown()


WHATEVER_IT_DOES = ["returns", "memoizes", "waits", "ends", "renews"]


@pytest.mark.parametrize("then", WHATEVER_IT_DOES)
@pytest.mark.parametrize("lease", [None, 60])
@pytest.mark.parametrize("retained", [False, True])
def test_the_owner_stops_at_its_next_write_and_says_cancelled(executed, store, then, lease, retained) -> None:
    definition, owner = executed(then, lease_timeout=lease, lease_renewal=False, retain_completion=retained)
    assert definition.cancel() is True
    cancelled = store.load("w")
    assert definition.inspect().status is WorkflowStatus.CANCELLED
    refused = owner.ends()
    assert isinstance(refused, WorkflowRefusedError)
    assert refused.reason is RefusalReason.CANCELLED
    assert store.load("w") == (cancelled if retained else {})
    assert (store.entry("w") is not None) is retained


@pytest.mark.parametrize("lease", [None, 60])
@pytest.mark.parametrize("retained", [False, True])
def test_a_node_that_fails_by_itself_under_a_cancellation_still_raises_its_own_error(executed, store, lease, retained) -> None:
    definition, owner = executed("raises", lease_timeout=lease, lease_renewal=False, retain_completion=retained)
    definition.cancel()
    assert isinstance(owner.ends(), OwnError)
    assert bool(store.load("w")) is retained


@pytest.mark.parametrize("then", ["returns", "ends"])
def test_an_owner_on_an_event_loop_says_so_too(executed, store, then) -> None:
    definition, owner = executed(then, call="aio")
    assert asyncio.run(definition.aio.cancel("r")) is True
    assert owner.ends().reason is RefusalReason.CANCELLED
    assert store.load("w") == {}


@pytest.mark.parametrize("retained", [False, True])
def test_whoever_cancels_decides_on_retention_not_the_owner(executed, store, clock, retained) -> None:
    _, owner = executed(lease_timeout=60, lease_renewal=False, retain_completion=not retained)
    WorkflowEngine(store, clock=clock).cancel("w", retain=retained)
    assert owner.ends().reason is RefusalReason.CANCELLED
    assert bool(store.load("w")) is retained


def test_while_the_last_lease_is_live_the_run_can_be_neither_replaced_nor_forgotten(executed, store, clock) -> None:
    definition, owner = executed(lease_timeout=60, lease_renewal=False)
    definition.cancel()
    clock.advance(59)
    assert reason_of(definition.abandon) is RefusalReason.EXECUTING
    assert reason_of(lambda: definition.acknowledge("r")) is RefusalReason.EXECUTING
    assert reason_of(definition.run) is RefusalReason.CANCELLED
    assert owner.ends().reason is RefusalReason.CANCELLED
    assert definition.inspect() is None


@pytest.mark.parametrize("lease", [None, 60])
@pytest.mark.parametrize("settle", ["abandon", "acknowledge"])
def test_a_sweeper_finds_and_forgets_what_its_owner_left(executed, store, clock, lease, settle) -> None:
    """Without a lease nothing is known of the owner: the entry is due at once, and the owner is only told otherwise."""
    definition, owner = executed(lease_timeout=lease, lease_renewal=False)
    lease_end = clock.now().timestamp() + (lease or 0)
    definition.cancel()
    assert store.entry("w").due == lease_end
    assert store.due(lease_end - 1) == []
    clock.advance(lease or 0)
    (entry,) = store.due(clock.now().timestamp())
    engine = WorkflowEngine(store, clock=clock)
    if settle == "abandon":
        engine.abandon(entry.partition)
    else:
        engine.acknowledge(entry.partition, RunSummary.of(entry).run_id)
    assert (store.load("w"), store.entry("w")) == ({}, None)
    assert owner.ends().reason is RefusalReason.STALE_ATTEMPT
    assert store.load("w") == {}


def test_a_retained_cancellation_may_be_acknowledged_while_its_owner_is_busy(executed, store) -> None:
    definition, owner = executed(lease_timeout=60, lease_renewal=False, retain_completion=True)
    definition.cancel()
    definition.acknowledge("r")
    assert store.load("w") == {}
    assert owner.ends().reason is RefusalReason.STALE_ATTEMPT


def test_an_owner_leaves_the_run_that_came_after_the_cancelled_one_alone(executed, define, store) -> None:
    definition, owner = executed(retain_completion=True)
    definition.cancel()
    definition.acknowledge("r")

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    define(ask).run(ExecutionRequest.start(run_id="successor"))
    before = store.load("w")
    assert owner.ends().reason is RefusalReason.STALE_ATTEMPT
    assert store.load("w") == before


@pytest.mark.parametrize("retained", [False, True])
def test_a_dead_owners_run_is_cancelled_in_the_same_way(define, store, clock, process_death, retained) -> None:
    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        store.die()
        raise process_death

    definition = define(work, lease_timeout=60, retain_completion=retained)
    with pytest.raises(process_death):
        definition.run()
    store.before = lambda call: None
    clock.advance(60)
    assert definition.cancel() is True
    assert definition.inspect().status is WorkflowStatus.CANCELLED
    assert store.entry("w").due == (None if retained else clock.now().timestamp())
    assert definition.abandon() is True


def test_a_node_may_cancel_its_own_run(define, store) -> None:
    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        assert definition.cancel() is True
        return StopEvent()

    definition = define(work)
    assert reason_of(definition.run) is RefusalReason.CANCELLED
    assert store.load("w") == {}


def test_whoever_reads_the_items_of_a_cancelled_run_is_told(define, store) -> None:
    def work(event: StartEvent, state: WorkflowState) -> Generator[str, None, Next]:
        yield "first"
        yield "second"
        yield "third"
        return Next()

    def end(event: Next, state: WorkflowState) -> StopEvent:
        raise AssertionError("a node ran after its run had been cancelled")

    definition = define(work, end)
    stream = definition.events()
    assert next(stream) == "first"
    definition.cancel()
    assert [next(stream), next(stream)] == ["second", "third"]
    assert reason_of(lambda: next(stream)) is RefusalReason.CANCELLED
    stream.close()
    assert store.load("w") == {}


# --- races ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def overtaken(define, store, inner):
    """Return what lets a rival act on the store between the canceller's read and its write."""

    def make(rival: Callable[[], Any]) -> None:
        def once(call: Any) -> None:
            if call.name == "load":
                store.after = lambda call: None
                rival()

        store.after = once

    return make


def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
    first = await_event("first")
    return StopEvent([first, await_event("second")])


@pytest.mark.parametrize("retained", [False, True])
def test_a_cancel_that_loses_to_a_claim_looks_again_and_wins(define, store, inner, overtaken, retained) -> None:
    define(ask).run()
    rival = define(ask, persistence=inner)
    overtaken(lambda: rival.run(ExecutionRequest.resume(1)))
    assert define(ask, retain_completion=retained).cancel() is True
    assert rival.inspect() is None or rival.inspect().status is WorkflowStatus.CANCELLED
    assert (rival.inspect() is not None) is retained


def test_a_cancel_that_loses_to_a_commit_of_the_owner_looks_again_and_wins(define, store, inner, overtaken) -> None:
    definition = define(persistence=inner)

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        overtaken(lambda: memoize("in between", lambda: 1))
        assert define().cancel() is True
        return StopEvent()

    assert reason_of(define(work, persistence=inner, lease_timeout=60, lease_renewal=False).run) is RefusalReason.CANCELLED
    assert store.names == ["load", "write_if_unchanged", "load", "write_if_unchanged"]
    assert definition.inspect() is None


@pytest.mark.parametrize("rival", ["completes", "abandons", "cancels"])
def test_a_cancel_whose_run_has_ended_meanwhile_finds_none(define, store, inner, overtaken, rival) -> None:
    def act() -> None:
        other = define(ask, persistence=inner)
        match rival:
            case "completes":
                other.run(ExecutionRequest.resume(1))
                other.run(ExecutionRequest.resume(2))
            case "abandons":
                other.abandon()
            case _:
                other.cancel()

    for named in (None, "r"):
        define(ask).run(ExecutionRequest.start(run_id="r"))
        overtaken(act)
        if named is None:
            assert define(ask).cancel() is False
        else:
            assert reason_of(lambda: define(ask).cancel("r")) is RefusalReason.STALE_RUN
        assert inner.load("w") == {}


def test_a_cancel_that_loses_to_a_retained_completion_leaves_it(define, inner, overtaken) -> None:
    define(ask).run()
    rival = define(ask, persistence=inner, retain_completion=True)
    rival.run(ExecutionRequest.resume(1))
    overtaken(lambda: rival.run(ExecutionRequest.resume(2)))
    assert reason_of(define(ask).cancel) is RefusalReason.COMPLETED
    assert rival.inspect().status is WorkflowStatus.COMPLETED


def test_a_claim_that_loses_to_a_cancel_writes_nothing(define, store, inner, overtaken) -> None:
    definition = define(ask, retain_completion=True)
    definition.run()
    overtaken(lambda: define(ask, persistence=inner, retain_completion=True).cancel())
    assert reason_of(lambda: definition.run(ExecutionRequest.resume(1))) is RefusalReason.CANCELLED
    assert definition.inspect().status is WorkflowStatus.CANCELLED
    assert definition.inspect().execution_attempt == 1


def test_an_abandon_that_loses_to_a_cancel_is_a_conflict(define, inner, overtaken) -> None:
    define(ask).run()
    overtaken(lambda: define(ask, persistence=inner, retain_completion=True).cancel())
    assert reason_of(define(ask).abandon) is RefusalReason.CONFLICT
    assert define(ask).inspect().status is WorkflowStatus.CANCELLED


def test_of_many_cancels_and_an_answer_every_cancel_succeeds(define, store) -> None:
    for _ in range(5):
        define(ask, retain_completion=True).run(ExecutionRequest.start(run_id="r"))
        barrier = threading.Barrier(4)

        def at_once(call: Callable[[], Any], barrier: threading.Barrier = barrier) -> Any:
            barrier.wait(PATIENCE)
            try:
                return call()
            except WorkflowRefusedError as refused:
                return refused.reason

        definition = define(ask, retain_completion=True)
        answer = definition.submit_inputs(1).run
        with ThreadPoolExecutor(4) as pool:
            *cancels, answered = pool.map(at_once, [definition.cancel] * 3 + [answer])
        assert cancels == [True] * 3
        assert isinstance(answered, WorkflowState) or answered in (RefusalReason.CANCELLED, RefusalReason.STALE_ATTEMPT)
        assert json.loads(store.load("w")["__control"])["status"] == "cancelled"
        definition.acknowledge("r")
