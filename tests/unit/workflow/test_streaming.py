"""Reading a run's live items in a plain thread (P, G)."""

import contextvars
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from workflow import (
    ActivityStreamEvent,
    Event,
    ExecutionRequest,
    GraphError,
    InterruptEvent,
    Node,
    RunInFlightError,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    emit,
    memoize,
    recall_memo,
)
from workflow.output import HandOver

PATIENCE = 10.0
"""Seconds after which a thread that has not come fails its test."""
Items = Generator[Any, None, Event]


class Next(Event):
    number: int = 1


def two(event: StartEvent, state: WorkflowState) -> Generator[str, None, Next]:
    yield "a"
    yield "b"
    return Next()


def end(event: Next, state: WorkflowState) -> StopEvent:
    emit("c")
    return StopEvent("done")


def failure_of(definition: Workflow) -> tuple[WorkflowStatus, str]:
    """How the current run stands, and why it failed."""
    seen = definition.inspect()
    assert seen is not None
    return seen.status, seen.failure.message if seen.failure else ""


STOPPED = (WorkflowStatus.FAILED, "the consumer stopped before the run settled: run() recovers it")


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


@pytest.fixture
def gate():
    """Return an event that is always set in the end, so that no thread is left behind."""
    event = threading.Event()
    yield event
    event.set()


# --- before the first pull --------------------------------------------------------------------------------------------------


def test_c002_an_unbound_definition_is_refused_at_the_call(define) -> None:
    definition = define(two, end, workflow_id=None)
    for call in (definition.events, definition.aio.events):
        with pytest.raises(WorkflowError, match="no workflow ID"):
            call()


@pytest.mark.parametrize("ending", ["close", "with", "drop"])
def test_c114_a_stream_that_is_never_read_claims_and_writes_nothing(define, store, ending) -> None:
    stream = define(two, end).events()
    match ending:
        case "close":
            stream.close()
        case "with":
            with stream:
                pass
        case _:
            del stream
    assert store.calls == []


def test_a_closed_stream_does_not_begin(define, store) -> None:
    stream = define(two, end).events()
    stream.close()
    assert list(stream) == []
    assert store.calls == []


def test_c107_what_a_stream_needs_is_resolved_at_its_first_pull(define) -> None:
    built: list[Callable[..., Any]] = [two]

    class Growing(Workflow):
        def nodes(self):
            return built

    definition = define(cls=Growing)
    stream = definition.events()
    definition.max_steps = 2
    built.append(end)
    assert list(stream) == ["a", "b", "c"]


def test_a_refusal_and_a_misuse_surface_at_the_first_pull(define, store) -> None:
    for _ in range(2):
        stream = define(two, end, max_steps=0).events()
        with pytest.raises(WorkflowError, match="max_steps"):
            next(stream)
    assert store.calls == []
    open_one = define(two, end).events()
    next(open_one)
    refused = define(two, end).events()
    with pytest.raises(RunInFlightError):
        next(refused)
    refused.close()
    assert list(open_one) == ["b", "c"]


# --- items ------------------------------------------------------------------------------------------------------------------


def test_c251_items_arrive_before_their_node_ends_and_the_state_comes_last(define, gate) -> None:
    def work(event: StartEvent, state: WorkflowState) -> Items:
        yield ActivityStreamEvent("1", "begun", {"at": 0})
        assert gate.wait(PATIENCE)
        yield "later"
        state["seen"] = True
        return StopEvent("done")

    stream = define(work).events()
    assert next(stream) == ActivityStreamEvent("1", "begun", {"at": 0})
    with pytest.raises(WorkflowError, match="read to its end"):
        stream.state  # noqa: B018
    gate.set()
    assert list(stream) == ["later"]
    assert (stream.state["seen"], stream.state.execution.result) == (True, "done")
    assert list(stream) == []


def test_c252_items_of_all_nodes_come_in_one_order(define) -> None:
    """From generators, from `emit` in plain, async and generator nodes; an event that is yielded is an item like any other."""

    def first(event: StartEvent, state: WorkflowState) -> Generator[Any, None, Next]:
        emit(0)
        yield 1
        yield None
        yield StopEvent("an item")
        emit(3)
        return Next()

    async def second(event: Next, state: WorkflowState) -> StopEvent:
        emit(4)
        emit(5)
        return StopEvent()

    assert list(define(first, second).events()) == [0, 1, None, StopEvent("an item"), 3, 4, 5]


def test_run_goes_through_the_same_nodes_and_drops_their_items(define) -> None:
    assert define(two, end).run().execution.result == "done"


def test_c253_the_last_item_of_a_suspended_run_says_what_it_waits_for(define) -> None:
    def ask(event: Next, state: WorkflowState) -> Items:
        yield "asking"
        answer = await_event("go")
        yield f"answered {answer}"
        return StopEvent(answer)

    definition = define(two, ask)
    stream = definition.events()
    *items, last = stream
    assert (items, type(last)) == (["a", "b", "asking"], InterruptEvent)
    assert last.request == stream.state.interrupt_request == definition.inspect().interrupt
    assert stream.state.is_interrupted()
    # C257: what is replayed streams nothing; a node that runs again does.
    resumed = definition.events(ExecutionRequest.signal("go", 7))
    assert list(resumed) == ["asking", "answered 7"]
    assert resumed.state.execution.result == 7


def test_c121_a_recovery_streams_no_replayed_step(define, fail_once, trip) -> None:
    def later(event: Next, state: WorkflowState) -> Items:
        yield "c"
        fail_once()
        yield "d"
        return StopEvent()

    definition = define(two, later)
    stream = definition.events()
    assert [next(stream), next(stream), next(stream)] == ["a", "b", "c"]
    with pytest.raises(trip):
        next(stream)
    assert list(definition.events()) == ["c", "d"]


def test_c136_a_recovery_after_the_memo_of_a_finished_stream_does_not_stream_again(define, fail_once, trip) -> None:
    def work(event: StartEvent, state: WorkflowState) -> Items:
        text = recall_memo("text")
        if text is None:
            yield from ("he", "llo")
            text = memoize("text", lambda: "hello")
        fail_once()
        return StopEvent(text)

    definition = define(work)
    with pytest.raises(trip):
        list(definition.events())
    stream = definition.events()
    assert (list(stream), stream.state.execution.result) == ([], "hello")


def test_c058_idle_polls_and_retained_outcomes_stream_nothing(define, store) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    definition = define(two, ask, retain_completion=True)
    definition.run()
    store.forget()
    polled = definition.events(ExecutionRequest.resume())
    assert (list(polled), polled.state.is_interrupted()) == ([], True)
    definition.run(ExecutionRequest.resume(5))
    store.forget()
    kept = definition.events(ExecutionRequest.resume())
    assert (list(kept), kept.state.execution.result) == ([], 5)
    assert store.writes == []


def test_an_error_comes_after_the_items_before_it_as_it_is_and_once(define) -> None:
    error = ValueError("as it is")

    def work(event: StartEvent, state: WorkflowState) -> Items:
        yield 1
        yield 2
        raise error

    definition = define(work)
    stream = definition.events()
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="as it is") as raised:
        next(stream)
    assert raised.value is error
    assert list(stream) == []
    assert failure_of(definition) == (WorkflowStatus.FAILED, "as it is")
    stream.close()
    assert failure_of(definition) == (WorkflowStatus.FAILED, "as it is")


def test_a_generator_that_returns_no_event_fails_the_run(define) -> None:
    def work(event: StartEvent, state: WorkflowState) -> Items:  # pyright: ignore[reportReturnType]
        yield 1

    stream = define(work).events()
    assert next(stream) == 1
    with pytest.raises(GraphError, match="returned NoneType"):
        next(stream)


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_generator_that_swallows_its_suspension_fails_the_run(define, kind) -> None:
    def plain(event: StartEvent, state: WorkflowState) -> Items:
        try:
            await_event("go")
        except BaseException:  # noqa: BLE001 - what the test is about
            yield "swallowed"
        return StopEvent()

    async def asynchronous(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        try:
            await_event("go")
        except BaseException:  # noqa: BLE001 - what the test is about
            yield "swallowed"
        yield StopEvent()

    definition = define(plain if kind == "plain" else asynchronous)
    stream = definition.events()
    assert next(stream) == "swallowed"
    with pytest.raises(WorkflowError, match="swallowed its own suspension"):
        next(stream)
    assert definition.inspect().status is WorkflowStatus.FAILED


# --- back-pressure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["generator", "emit", "async generator"])
def test_a_node_gets_at_most_one_item_ahead_of_its_reader(define, kind) -> None:
    """Item n is begun only when item n - 2 has been taken: one waits to be taken, one is being made."""
    begun: list[int] = []
    blocked = threading.Semaphore(0)

    def made(number: int) -> int:
        begun.append(number)
        blocked.release()
        return number

    def generator(event: StartEvent, state: WorkflowState) -> Items:
        for number in range(6):
            yield made(number)
        return StopEvent()

    def emitting(event: StartEvent, state: WorkflowState) -> StopEvent:
        for number in range(6):
            emit(made(number))
        return StopEvent()

    async def async_generator(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        for number in range(6):
            yield made(number)
        yield StopEvent()

    stream = define({"generator": generator, "emit": emitting, "async generator": async_generator}[kind]).events()
    for taken in range(1, 7):
        assert next(stream) == taken - 1
        expected = min(taken + 2, 6)
        while len(begun) < expected:
            assert blocked.acquire(timeout=PATIENCE)
        assert begun == list(range(expected))
    assert list(stream) == []


# --- the reader stops -------------------------------------------------------------------------------------------------------


def stop_by_close(stream: Any) -> None:
    stream.close()
    stream.close()


def stop_by_leaving(stream: Any) -> None:
    with pytest.raises(KeyError), stream:
        raise KeyError


def stop_by_break(stream: Any) -> None:
    with stream:
        for _ in stream:
            break


@pytest.mark.parametrize("stop", [stop_by_close, stop_by_leaving, stop_by_break])
@pytest.mark.parametrize("lease", [None, 60])
def test_c111_a_reader_that_stops_fails_the_run_and_run_recovers_it(define, stop, lease) -> None:
    definition = define(two, end, lease_timeout=lease)
    stream = definition.events()
    assert next(stream) == "a"
    stop(stream)
    assert failure_of(definition) == STOPPED
    assert list(stream) == []
    with pytest.raises(WorkflowError, match="read to its end"):
        stream.state  # noqa: B018
    state = definition.run()
    assert (state.execution.result, state.execution.attempt) == ("done", 2)


def test_a_stream_that_is_dropped_fails_the_run(define) -> None:
    definition = define(two, end)
    for _ in definition.events():
        break
    assert failure_of(definition) == STOPPED


def test_a_stream_that_the_garbage_collector_finds_fails_the_run_even_where_its_locks_are_held(monkeypatch) -> None:
    """It may be found in any thread, at any point: here by one that is inside the store."""
    monkeypatch.setattr("workflow.stream.DROP_PATIENCE", 0.05)
    held = InMemoryPersistence()
    definition = Workflow("w", nodes=[two, end], persistence=held)
    stream: Any = definition.events()
    next(stream)
    cycle: list[Any] = [stream]
    cycle.append(cycle)
    del stream, cycle
    with held._lock:
        gc.collect()
    deadline = time.monotonic() + PATIENCE
    while failure_of(definition) != STOPPED:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_reader_that_is_interrupted_while_it_waits_can_still_stop_the_run(define, monkeypatch) -> None:
    def interrupted(hand_over: Any) -> Any:
        raise KeyboardInterrupt

    definition = define(two, end)
    stream = definition.events()
    next(stream)
    monkeypatch.setattr(HandOver, "take", interrupted)
    with pytest.raises(KeyboardInterrupt), stream:
        next(stream)
    assert failure_of(definition) == STOPPED


def test_closing_fails_the_run_at_once_while_its_node_still_runs_and_that_node_writes_nothing_more(define, store, gate) -> None:
    ended = threading.Event()
    caught: list[BaseException] = []

    def work(event: StartEvent, state: WorkflowState) -> Items:
        yield "begun"
        yield "busy"
        try:
            assert gate.wait(PATIENCE)
            memoize("late", lambda: 1)
        except BaseException as error:
            caught.append(error)
            raise
        finally:
            ended.set()
        return StopEvent()

    definition = define(work)
    stream = definition.events()
    assert [next(stream), next(stream)] == ["begun", "busy"]
    stream.close()
    assert failure_of(definition) == STOPPED
    assert not ended.is_set()
    before = store.load("w")
    gate.set()
    assert ended.wait(PATIENCE)
    assert store.load("w") == before
    assert "cannot write" in str(caught[0])


@pytest.mark.parametrize("kind", ["generator", "emit", "async generator", "async emit"])
def test_an_endless_node_ends_when_its_reader_has_gone(define, kind) -> None:
    ended = threading.Event()

    def generator(event: StartEvent, state: WorkflowState) -> Items:
        try:
            while True:
                yield "tick"
        finally:
            ended.set()

    def emitting(event: StartEvent, state: WorkflowState) -> StopEvent:
        try:
            while True:
                emit("tick")
        finally:
            ended.set()

    async def async_generator(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        try:
            while True:
                yield "tick"
        finally:
            ended.set()

    async def async_emitting(event: StartEvent, state: WorkflowState) -> StopEvent:
        async def nothing() -> None:
            pass

        try:
            while True:
                emit("tick")
                await amemoize("nothing", nothing)
        finally:
            ended.set()

    nodes = {
        "generator": generator,
        "emit": emitting,
        "async generator": async_generator,
        "async emit": async_emitting,
    }
    definition = define(nodes[kind])
    with definition.events() as stream:
        assert [next(stream), next(stream)] == ["tick", "tick"]
    assert ended.wait(PATIENCE)
    assert failure_of(definition) == STOPPED


@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize("call", ["initialize_if_absent", "load", "write_if_unchanged"])
def test_a_reader_that_stops_while_the_run_is_being_taken_leaves_none_that_looks_alive(define, store, call, at) -> None:
    """Whether the claim has just been written or is just about to be."""

    there, closed = threading.Event(), threading.Event()

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        if there.is_set():
            assert closed.wait(PATIENCE)
        return StopEvent(await_event("go"))

    definition = define(ask, lease_timeout=60, lease_renewal=False)
    request = None if call == "initialize_if_absent" else ExecutionRequest.resume(1)
    if request is not None:
        definition.run()

    def hold(made: Any) -> None:
        if made.name == call and not there.is_set():
            there.set()
            # A close that waits for the lock of this very write lets it go on.
            closed.wait(0.05)

    setattr(store, at, hold)
    stream = definition.events(request)
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    assert there.wait(PATIENCE)
    stream.close()
    closed.set()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    store.before = store.after = lambda made: None
    status = definition.inspect().status
    assert status is (WorkflowStatus.SUSPENDED if call == "load" else WorkflowStatus.FAILED)
    state = definition.run(request)
    assert state.is_interrupted() if request is None else state.execution.result == 1


def test_closing_lets_another_thread_that_reads_go(define, gate) -> None:
    def work(event: StartEvent, state: WorkflowState) -> Items:
        yield "begun"
        assert gate.wait(PATIENCE)
        return StopEvent()

    stream = define(work).events()
    assert next(stream) == "begun"
    rest: list[Any] = ["not read"]
    reader = threading.Thread(target=lambda: rest.__setitem__(slice(None), stream))
    reader.start()
    stream.close()
    reader.join(PATIENCE)
    assert rest == []


# --- after settlement -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "drop"])
@pytest.mark.parametrize("retained", [False, True])
def test_c112_stopping_after_the_run_has_settled_changes_nothing(define, store, how, retained) -> None:
    settled = threading.Event()

    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    definition = define(two, ask, retain_completion=retained)
    writes = len(["ignition", "two", "suspension"])
    store.after = lambda call: settled.set() if len(store.writes) >= writes else None
    stream = definition.events()
    assert [next(stream), next(stream)] == ["a", "b"]
    assert settled.wait(PATIENCE)
    before = store.load("w")
    if how == "close":
        stream.close()
    else:
        del stream
    assert store.load("w") == before
    assert definition.inspect().status is WorkflowStatus.SUSPENDED
    with definition.events(ExecutionRequest.resume(1)) as resumed:
        assert list(resumed) == []
    assert (definition.inspect() is not None) is retained


def test_a_stream_closed_after_its_run_was_taken_over_leaves_the_new_owner_alone(define, store) -> None:
    def work(event: StartEvent, state: WorkflowState) -> Items:
        yield from range(4)
        return StopEvent()

    definition = define(work)
    stream = definition.events()
    next(stream)
    taken_over = definition.events(ExecutionRequest.resume())
    assert next(taken_over) == 0
    before = store.load("w")
    stream.close()
    assert store.load("w") == before
    assert list(taken_over) == [1, 2, 3]


# --- several at once --------------------------------------------------------------------------------------------------------


def test_c104_a_second_call_of_one_definition_meets_the_persisted_run(define) -> None:
    for lease in (None, 60):
        definition = define(two, end, lease_timeout=lease)
        stream = definition.events()
        next(stream)
        with pytest.raises(RunInFlightError):
            definition.run()
        assert list(stream) == ["b", "c"]
        assert stream.state.execution.result == "done"


def test_c105_two_streams_read_in_turn_in_one_thread_never_see_each_other(define) -> None:
    class Tell(Node):
        def __call__(self, event: StartEvent, state: WorkflowState) -> Items:
            for number in range(3):
                state["number"] = number
                self.emit((state.execution.workflow_id, number))
                yield self.memoize(f"memo {number}", lambda: state.execution.workflow_id), self.idempotency_key("k")
            return StopEvent(state["number"])

    definition = define(Tell(), workflow_id=None)
    left, right = definition.for_id("left").events(), definition.for_id("right").events()
    pairs = list(zip(left, right, strict=True))
    assert [pair[0] for pair in pairs[::2]] == [("left", n) for n in range(3)]
    assert [pair[1] for pair in pairs[::2]] == [("right", n) for n in range(3)]
    assert {(mine[0], yours[0]) for mine, yours in pairs[1::2]} == {("left", "right")}
    assert len({key for pair in pairs[1::2] for _, key in pair}) == 2
    assert (left.state.execution.result, right.state.execution.result) == (2, 2)


def test_a_stream_inside_a_streaming_node(define) -> None:
    def outer(event: StartEvent, state: WorkflowState) -> Items:
        inner = define(two, end, workflow_id="inner").events()
        for item in inner:
            yield f"{item} of {state.execution.workflow_id}"
        emit(recall_memo("none"))
        return StopEvent(inner.state.execution.result)

    stream = define(outer).events()
    assert list(stream) == ["a of w", "b of w", "c of w", None]
    assert stream.state.execution.result == "done"


tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="none")


def test_nodes_see_the_context_of_the_first_pull_and_change_a_copy(define) -> None:
    seen: list[str] = []

    def look(event: StartEvent, state: WorkflowState) -> Generator[str, None, Next]:
        seen.append(tenant.get())
        tenant.set("changed by a node")
        yield "looked"
        seen.append(tenant.get())
        return Next()

    async def look_again(event: Next, state: WorkflowState) -> StopEvent:
        seen.append(tenant.get())
        return StopEvent()

    def read() -> None:
        stream = define(look, look_again).events()
        tenant.set("at the first pull")
        next(stream)
        tenant.set("later")
        assert list(stream) == []
        assert tenant.get() == "later"

    contextvars.copy_context().run(read)
    assert seen[0] == "at the first pull"
    assert "later" not in seen
    assert tenant.get() == "none"


# --- forks and ends of processes --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("child_does", ["close", "drop", "read", "exit"])
def test_c113_a_forked_child_that_drops_its_copy_does_not_fail_the_parents_run(tmp_path, child_does) -> None:
    class Shared(InMemoryPersistence):
        """A store that leaves a file behind when a forked child writes to it."""

        def write_if_unchanged(self, *args: Any, **options: Any) -> bool:
            if os.getpid() != parent:
                (tmp_path / "written by the child").touch()
            return super().write_if_unchanged(*args, **options)

    parent = os.getpid()
    stream: Any = Workflow("w", nodes=[two, end], persistence=Shared()).events()
    assert next(stream) == "a"
    child = os.fork()
    if child == 0:
        code = 0
        match child_does:
            case "close":
                stream.close()
            case "drop":
                del stream
                gc.collect()
            case "read":
                try:
                    next(stream)
                    code = 1
                except WorkflowError:
                    pass
            case _:
                import atexit

                atexit._run_exitfuncs()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert list(stream) == ["b", "c"]
    assert stream.state.execution.result == "done"
    assert list(tmp_path.iterdir()) == []


ENDING = """
from collections.abc import Generator
from persistence import InMemoryPersistence, Persistence
from workflow import StartEvent, StopEvent, Workflow, WorkflowState

class Printing(InMemoryPersistence):
    def write_if_unchanged(self, *args, **options):
        written = super().write_if_unchanged(*args, **options)
        print(args[3]["__control"].decode(), flush=True)
        return written

def work(event: StartEvent, state: WorkflowState) -> Generator[str, None, StopEvent]:
    yield "a"
    yield "b"
    yield "c"
    return StopEvent()

stream = Workflow("w", nodes=[work], persistence=Printing()).events()
next(stream)
{ending}
"""


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)"])
def test_a_program_that_ends_with_an_open_stream_fails_its_run(ending) -> None:
    program = [sys.executable, "-W", "error", "-c", ENDING.format(ending=ending)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert '"status":"failed"' in ended.stdout
    assert ended.stderr == ""
