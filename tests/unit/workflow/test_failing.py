"""What ends a segment early leaves a failed run, and the caller sees the error that did it (G)."""

import contextlib
import threading
from typing import Any, Self

import pytest

from persistence import UnreachableError
from workflow import (
    Event,
    ExecutionRequest,
    GraphError,
    RefusalReason,
    SerializationError,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    Workflow,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
    await_event,
    interrupt_if,
    memoize,
)
from workflow.context import Suspension


class Next(Event):
    pass


class OddError(Exception):
    """An error that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def end(event: Next, state: WorkflowState) -> StopEvent:
    """Return the last step of most workflows here."""
    return StopEvent(state.all())


@pytest.fixture
def raising(define):
    """Return what makes a workflow whose first step raises what it is given, or goes on."""

    def make(error: BaseException | None, **options: Any):
        def begin(event: StartEvent, state: WorkflowState) -> Next:
            state["touched"] = True
            memoize("kept", lambda: 1)
            if error is not None:
                raise error
            return Next()

        return define(begin, end, **options)

    return make


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit(), OddError(), ExceptionGroup("g", [OSError()])],
)
def test_c108_the_error_itself_reaches_the_caller_and_the_run_is_failed(raising, store, error) -> None:
    with pytest.raises(type(error)) as caught:
        raising(error).run()
    assert caught.value is error
    snapshot = raising(None).inspect()
    assert snapshot.status is WorkflowStatus.FAILED
    assert [key for key in store.load("w") if key.endswith("-0")] == []
    assert raising(None).run().execution.result == {"touched": True}


def test_c109_a_store_that_fails_while_the_failure_is_marked_does_not_hide_it(raising, store) -> None:
    error = ValueError("mine")

    def down(call) -> None:
        if call.number == 2:
            raise UnreachableError("down")

    store.before = down
    with pytest.raises(ValueError, match="mine"):
        raising(error).run()
    assert raising(None).inspect().status is WorkflowStatus.RUNNING


@pytest.mark.parametrize("part", ["resources", "nodes", "state", "enter"])
def test_c110_what_fails_while_a_segment_is_prepared_fails_the_claimed_run(define, part) -> None:
    def broken() -> Any:
        raise ValueError(part)

    class BrokenService(WorkflowResources):
        def __enter__(self):
            broken()

        def __exit__(self, *error: object) -> None: ...

    class BrokenNodes(Workflow):
        def nodes(self):
            return broken()

    class BrokenState(Workflow):
        def state(self):
            return broken()

    options: dict[str, Any] = {
        "resources": {"resources": broken},
        "nodes": {"cls": BrokenNodes},
        "state": {"cls": BrokenState},
        "enter": {"resources": BrokenService},
    }[part]

    def begin(event: StartEvent, state: WorkflowState) -> Next:
        return Next()

    with pytest.raises(ValueError, match=part):
        define(begin, end, **options).run()
    snapshot = define().inspect()
    assert (snapshot.status, snapshot.execution_attempt) == (WorkflowStatus.FAILED, 1)
    assert define(begin, end).run().execution.attempt == 2


def test_an_unusable_graph_fails_the_claimed_run_before_any_node(define) -> None:
    with pytest.raises(GraphError, match="StartEvent"):
        define(end).run()
    assert define().inspect().status is WorkflowStatus.FAILED


def test_an_event_that_no_node_handles_fails_the_run_after_its_step_was_kept(define, store) -> None:
    """Its step stays, so that adding the missing node is enough."""
    calls: list[int] = []

    def begin(event: StartEvent, state: WorkflowState) -> Next:
        calls.append(1)
        return Next()

    with pytest.raises(WorkflowError, match="no node handles Next"):
        define(begin).run()
    assert define(begin, end).run().execution.status is WorkflowStatus.COMPLETED
    assert calls == [1]


def test_what_a_node_returns_must_be_an_event(define) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        return None  # pyright: ignore

    with pytest.raises(GraphError, match="begin' returned NoneType"):
        define(begin).run()


def test_a_value_that_cannot_be_stored_is_a_permanent_error_with_its_path(define) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        state["deep"] = {"list": [1, object()]}
        return Next()

    with pytest.raises(SerializationError, match=r"'deep'.*\['list'\]\[1\]") as caught:
        define(begin, end).run()
    assert caught.value.permanent
    assert define().inspect().status is WorkflowStatus.FAILED


@pytest.mark.parametrize("catch", [BaseException, Suspension])
def test_a_swallowed_suspension_fails_the_run_saying_so(define, catch) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        with contextlib.suppress(catch):
            await_event("go")
        return Next()

    with pytest.raises(WorkflowError, match="swallowed its own suspension"):
        define(begin, end).run()
    assert define().inspect().status is WorkflowStatus.FAILED


def test_a_suspension_passes_through_except_exception(define) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        try:
            await_event("go")
        except Exception as error:
            raise AssertionError("caught") from error
        return Next()

    assert define(begin, end).run().is_interrupted()


def test_a_suspension_that_nobody_asked_for_is_an_error(define) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        raise Suspension

    with pytest.raises(WorkflowError, match="interrupt"):
        define(begin, end).run()


def test_c144_a_new_wait_in_front_of_the_answered_one_fails_and_keeps_the_answer(define) -> None:
    early = False

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        interrupt_if(early, WaitForEventRequest("early"))
        return StopEvent(await_event("go"))

    define(ask).run()
    early = True
    with pytest.raises(WorkflowError, match="same order"):
        define(ask).run(ExecutionRequest.resume("yes"))
    snapshot = define(ask).inspect()
    assert (snapshot.status, snapshot.input_accepted) == (WorkflowStatus.FAILED, True)
    early = False
    assert define(ask).run().execution.result == "yes"


# --- displaced --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def overtaken(define, store, inner, clock):
    """Return what makes a workflow whose first step is overtaken by another worker before it goes on as told."""

    def make(then, **options: Any):
        overtaking = threading.Event()

        def begin(event: StartEvent, state: WorkflowState) -> Next:
            if not overtaking.is_set():
                overtaking.set()
                clock.advance(60)
                rival = define(begin, end_of_rival, persistence=inner, lease_timeout=60)
                rival.run(ExecutionRequest.resume())
                then()
            return Next()

        def end_of_rival(event: Next, state: WorkflowState) -> StopEvent:
            await_event("rival")
            return StopEvent()

        return define(begin, end, lease_timeout=60, lease_renewal=False, **options)

    return make


def test_c099_a_displaced_worker_sees_its_own_error_and_changes_nothing(overtaken, store) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        overtaken(fail).run()
    snapshot = overtaken(fail).inspect()
    assert (snapshot.status, snapshot.execution_attempt) == (WorkflowStatus.SUSPENDED, 2)
    assert snapshot.interrupt.event_name == "rival"


@pytest.mark.parametrize("write", ["step", "memo"])
def test_a_displaced_worker_can_write_nothing(overtaken, store, write) -> None:
    held: list[dict[str, bytes]] = []

    def go_on() -> None:
        held.append(store.load("w"))
        if write == "memo":
            memoize("late", lambda: 1)

    with pytest.raises(WorkflowRefusedError) as refused:
        overtaken(go_on).run()
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    assert [store.load("w")] == held


@pytest.mark.parametrize("retain", [True, False])
def test_c100_a_displaced_worker_cannot_complete_the_run(define, store, clock, inner, retain) -> None:
    def only(event: StartEvent, state: WorkflowState) -> StopEvent:
        if state.execution.attempt == 1:
            clock.advance(60)
            define(only, persistence=inner, lease_timeout=60).run(ExecutionRequest.resume())
            return StopEvent("slow")
        await_event("rival")
        return StopEvent("rival")

    with pytest.raises(WorkflowRefusedError, match="cannot complete") as refused:
        define(only, lease_timeout=60, lease_renewal=False, retain_completion=retain).run()
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    assert define(only).inspect().execution_attempt == 2


def test_a_displaced_worker_that_would_complete_a_finished_run_is_stale(define, clock, inner) -> None:
    def only(event: StartEvent, state: WorkflowState) -> StopEvent:
        if state.execution.attempt == 1:
            clock.advance(60)
            define(only, persistence=inner).run(ExecutionRequest.resume())
        return StopEvent()

    with pytest.raises(WorkflowRefusedError) as refused:
        define(only, lease_timeout=60, lease_renewal=False).run()
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT


# --- resources --------------------------------------------------------------------------------------------------------------


class Service(WorkflowResources):
    """A service that says what happens to it, and can swallow errors or fail to close."""

    def __init__(self, log: list[str], swallow: bool = False, failing: bool = False) -> None:
        super().__init__()
        self.log, self.swallow, self.failing = log, swallow, failing

    def __enter__(self) -> Self:
        self.log.append("opened")
        return self

    def __exit__(self, *error: object) -> bool:
        self.log.append("closed")
        if self.failing:
            raise OSError("cannot close")
        return self.swallow


def test_resources_are_closed_when_the_segment_ends_however_it_ends(define, trip, fail_once) -> None:
    log: list[str] = []

    def begin(event: StartEvent, state: WorkflowState, service: Service) -> StopEvent:
        fail_once("begin")
        await_event("go")
        return StopEvent()

    definition = define(begin, resources=lambda: Service(log))
    with pytest.raises(trip):
        definition.run()
    assert log == ["opened", "closed"]
    assert definition.run().is_interrupted()
    definition.run(ExecutionRequest.resume(1))
    assert log == ["opened", "closed"] * 3


def test_resources_that_swallow_errors_do_not_turn_a_failure_into_a_success(define, trip, fail_once) -> None:
    def begin(event: StartEvent, state: WorkflowState, service: Service) -> StopEvent:
        fail_once("begin")
        return StopEvent("done")

    definition = define(begin, resources=lambda: Service([], swallow=True))
    with pytest.raises(trip):
        definition.run()
    assert definition.inspect().status is WorkflowStatus.FAILED
    assert definition.run().execution.result == "done"


def test_resources_that_fail_to_close_do_not_change_a_settled_run(define) -> None:
    def begin(event: StartEvent, state: WorkflowState, service: Service) -> StopEvent:
        return StopEvent("done")

    definition = define(begin, resources=lambda: Service([], failing=True), retain_completion=True)
    assert definition.run().execution.result == "done"
    assert definition.run(ExecutionRequest.resume()).execution.result == "done"
