"""Items become frames of a protocol, between a beginning and exactly one of three ends (P)."""

import asyncio
import datetime as dt
import threading
from collections.abc import AsyncGenerator, Generator, Iterable
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from tests.unit.workflow.streams import Capturing, Numbering
from workflow import (
    ActivityStreamEvent,
    Event,
    ExecutionRequest,
    JsonStreamAdapter,
    StartEvent,
    StopEvent,
    StreamAdapter,
    StreamFrame,
    Workflow,
    WorkflowError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    emit,
    memoize,
)

Items = Generator[Any, None, Event]


class Next(Event):
    pass


def two(event: StartEvent, state: WorkflowState) -> Items:
    yield "a"
    yield "b"
    return Next()


def end(event: Next, state: WorkflowState) -> StopEvent:
    emit("c")
    return StopEvent("done")


def ask(event: Next, state: WorkflowState) -> StopEvent:
    emit("asking")
    return StopEvent(await_event("go"))


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


@pytest.fixture(params=["events", "aio.events"])
def read(request):
    """Return what reads all items of a run, each way, and the error that ended them."""

    def on_a_loop(definition, asked=None):
        async def main():
            items: list[Any] = []
            try:
                async for item in definition.aio.events(asked):
                    items.append(item)  # noqa: PERF401 - what came before the error is wanted too
            except BaseException as error:  # noqa: BLE001 - handed to the test
                return items, error
            return items, None

        return asyncio.run(main())

    def plainly(definition, asked=None):
        items: list[Any] = []
        try:
            for item in definition.events(asked):
                items.append(item)  # noqa: PERF402 - what came before the error is wanted too
        except BaseException as error:  # noqa: BLE001 - handed to the test
            return items, error
        return items, None

    return plainly if request.param == "events" else on_a_loop


# --- the order --------------------------------------------------------------------------------------------------------------


def test_a_run_with_an_adapter_begins_and_ends_in_its_protocol(define, read) -> None:
    items, error = read(define(two, end, stream_adapter=Numbering))
    assert (items, error) == ([["start"], ["item", "a"], ["item", "b"], ["item", "c"], ["end", "done"]], None)


def test_c253_a_suspension_ends_with_the_adapters_own_frames_and_never_with_the_event(define, read) -> None:
    definition = define(two, ask, stream_adapter=Numbering)
    items, _ = read(definition)
    assert items == [["start"], ["item", "a"], ["item", "b"], ["item", "asking"], ["interrupt", definition.inspect().interrupt]]
    # C257: what is replayed gives no frames; the resumed segment is a stream of its own.
    items, _ = read(definition, ExecutionRequest.signal("go", 7))
    assert items == [["start"], ["item", "asking"], ["end", 7]]


def test_frames_after_a_failure_come_before_its_error(define, read, fail_once, trip) -> None:
    def failing(event: Next, state: WorkflowState) -> StopEvent:
        fail_once()
        return StopEvent()

    items, error = read(define(two, failing, stream_adapter=Numbering))
    assert isinstance(error, trip)
    assert items[-1] == ["error", error]
    assert [frame[0] for frame in items] == ["start", "item", "item", "error"]


@pytest.mark.parametrize(("ending", "status"), [("end", None), ("interrupt", "suspended"), ("error", "failed")])
def test_the_last_frames_come_after_the_outcome_is_recorded(define, read, ending, status) -> None:
    seen: list[Any] = []

    class Looking(Numbering):
        def _look(self) -> Iterable[Any]:
            snapshot = definition.inspect()
            seen.append(snapshot and snapshot.status.value)
            return ()

        def interrupt(self, request: Any) -> Iterable[Any]:
            return self._look()

        def end(self, state: WorkflowState) -> Iterable[Any]:
            return self._look()

        def error(self, error: BaseException) -> Iterable[Any]:
            return self._look()

    def last(event: Next, state: WorkflowState) -> StopEvent:
        if ending == "error":
            raise ValueError
        return StopEvent(await_event("go") if ending == "interrupt" else None)

    definition = define(two, last, stream_adapter=Looking)
    read(definition)
    assert seen == [status]


def test_an_adapter_hides_items_and_makes_several_frames_of_one(define, read) -> None:
    class Spelling(StreamAdapter):
        def transform(self, item: Any) -> Iterable[Any]:
            return [] if item == "a" else [item, item.upper()]

    assert read(define(two, end, stream_adapter=Spelling()))[0] == ["b", "B", "c", "C"]


def test_items_of_every_kind_of_node_go_through_the_adapter(define, read) -> None:
    async def telling(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        yield 1
        emit(2)
        yield Next()

    items, error = read(define(telling, end, stream_adapter=Numbering))
    assert (items, error) == ([["start"], ["item", 1], ["item", 2], ["item", "c"], ["end", "done"]], None)


# --- adapters that fail -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["start", "transform"])
def test_c255_an_adapter_that_fails_fails_the_run_and_its_error_frame_comes_once_that_is_recorded(define, read, where) -> None:
    statuses: list[WorkflowStatus] = []

    class Failing(Numbering):
        def start(self) -> Iterable[Any]:
            if where == "start":
                raise ValueError("no frames")
            return super().start()

        def transform(self, item: Any) -> Iterable[Any]:
            if item == "b":
                raise ValueError("no frame")
            return super().transform(item)

        def error(self, error: BaseException) -> Iterable[Any]:
            statuses.append(definition.inspect().status)
            return super().error(error)

    definition = define(two, end, stream_adapter=Failing)
    items, error = read(definition)
    assert isinstance(error, ValueError)
    assert items == ([] if where == "start" else [["start"], ["item", "a"]]) + [["error", error]]
    assert statuses == [WorkflowStatus.FAILED]
    # And through run(), where nobody reads.
    with pytest.raises(ValueError, match="no frame"):
        definition.run()
    assert definition.reconfigure(stream_adapter=Numbering).run().execution.result == "done"


def test_what_an_adapter_raises_inside_emit_is_the_nodes_to_catch(define, read) -> None:
    class Picky(StreamAdapter):
        def transform(self, item: Any) -> Iterable[Any]:
            if item == "bad":
                raise ValueError(item)
            return (item,)

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        try:
            emit("bad")
        except ValueError as error:
            emit(f"caught {error}")
        return StopEvent()

    assert read(define(node, stream_adapter=Picky)) == (["caught bad"], None)


def test_c110_a_factory_that_fails_fails_the_claimed_run_and_run_recovers_it(define) -> None:
    broken = True

    def make() -> StreamAdapter:
        if broken:
            raise ValueError("no adapter")
        return Numbering()

    definition = define(two, end, stream_adapter=make)
    with pytest.raises(ValueError, match="no adapter"):
        definition.run()
    assert definition.inspect().status is WorkflowStatus.FAILED
    broken = False
    assert definition.run().execution.attempt == 2


@pytest.mark.parametrize("end_of_run", ["completed", "suspended", "failed"])
@pytest.mark.parametrize("raised", [ValueError, asyncio.CancelledError])
def test_an_adapter_that_fails_at_its_end_alters_nothing(define, read, end_of_run, raised, caplog) -> None:
    class Failing(StreamAdapter):
        def interrupt(self, request: Any) -> Iterable[Any]:
            raise raised

        def end(self, state: WorkflowState) -> Iterable[Any]:
            raise raised

        def error(self, error: BaseException) -> Iterable[Any]:
            raise raised

    def last(event: Next, state: WorkflowState) -> StopEvent:
        if end_of_run == "failed":
            raise KeyError("its own")
        return StopEvent(await_event("go") if end_of_run == "suspended" else "done")

    definition = define(two, last, stream_adapter=Failing, retain_completion=True)
    items, error = read(definition)
    assert items == ["a", "b"]
    assert isinstance(error, KeyError) if end_of_run == "failed" else error is None
    assert definition.inspect().status.value == end_of_run
    assert "failed at its last frames" in caplog.text


@pytest.mark.parametrize("made", ["text", b"bytes", {"type": "x"}, None, 5])
def test_a_single_frame_where_a_list_belongs_is_refused_and_not_taken_apart(define, read, made) -> None:
    class Single(StreamAdapter):
        def transform(self, item: Any) -> Any:
            return made

    items, error = read(define(two, end, stream_adapter=Single))
    assert items == []
    assert isinstance(error, WorkflowError)
    assert "return a list of frames" in str(error)


def test_an_adapter_that_emits_is_told_so_and_does_not_hang(define, read) -> None:
    class Emitting(StreamAdapter):
        def transform(self, item: Any) -> Iterable[Any]:
            emit(item)
            return ()

    _, error = read(define(two, end, stream_adapter=Emitting))
    assert isinstance(error, WorkflowError)

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        emit("a")
        return StopEvent()

    _, error = read(define(node, stream_adapter=Emitting))
    assert "must not emit" in str(error)


@pytest.mark.parametrize("given", [5, "Numbering", lambda: 5])
def test_what_is_no_adapter_is_refused_by_name(define, given) -> None:
    with pytest.raises(WorkflowError, match="no stream adapter"):
        define(two, end, stream_adapter=given).run()


# --- when there is one ------------------------------------------------------------------------------------------------------


def test_each_segment_makes_its_own_and_the_constructor_wins_over_the_hook(define) -> None:
    made: list[StreamAdapter] = []

    class Hooked(Workflow):
        def stream_adapter(self) -> StreamAdapter:
            made.append(Numbering())
            return made[-1]

    definition = define(two, ask, cls=Hooked)
    first, *_ = definition.events()
    assert first == ["start"]
    assert list(definition.events(ExecutionRequest.signal("go", 1)))[-1] == ["end", 1]
    assert len(made) == 2
    assert list(define(two, end, cls=Hooked, workflow_id="v", stream_adapter=StreamAdapter()).events()) == ["a", "b", "c"]
    assert len(made) == 2


def test_c058_idle_polls_retained_outcomes_and_refusals_make_no_adapter_and_no_channel(define, read) -> None:
    made: list[str] = []

    class Counting(Workflow):
        def stream_adapter(self) -> StreamAdapter:
            made.append("adapter")
            return Numbering()

        def channel(self) -> Capturing:
            made.append("channel")
            return Capturing()

    definition = define(two, ask, cls=Counting, retain_completion=True)
    definition.run()
    assert sorted(made) == ["adapter", "channel"]
    made.clear()
    assert read(definition, ExecutionRequest.resume()) == ([], None)
    assert isinstance(read(definition, ExecutionRequest.signal("other", 1))[1], WorkflowError)
    assert made == []
    definition.run(ExecutionRequest.resume(5))
    made.clear()
    assert read(definition, ExecutionRequest.resume()) == ([], None)
    assert made == []


# --- the reader -------------------------------------------------------------------------------------------------------------


def test_c111_a_reader_that_stops_at_the_first_frame_fails_the_run(define) -> None:
    definition = define(two, end, stream_adapter=Numbering)
    with definition.events() as stream:
        assert next(stream) == ["start"]
    assert definition.inspect().status is WorkflowStatus.FAILED
    assert definition.run().execution.attempt == 2


def test_c112_a_reader_that_stops_among_the_last_frames_leaves_the_outcome_as_it_is(define) -> None:
    class Long(Numbering):
        def end(self, state: WorkflowState) -> Iterable[Any]:
            return [*super().end(state), "more", "and more"]

    definition = define(two, end, stream_adapter=Long, retain_completion=True)
    with definition.events() as stream:
        for frame in stream:
            if frame == ["end", "done"]:
                break
    assert definition.inspect().status is WorkflowStatus.COMPLETED


def test_a_node_gets_no_further_ahead_of_its_reader_than_without_an_adapter(define) -> None:
    begun: list[int] = []
    made = threading.Semaphore(0)

    def counting(event: StartEvent, state: WorkflowState) -> Items:
        for number in range(6):
            begun.append(number)
            made.release()
            yield number
        return StopEvent()

    stream = define(counting, stream_adapter=StreamAdapter).events()
    for taken in range(1, 7):
        assert next(stream) == taken - 1
        while len(begun) < min(taken + 2, 6):
            assert made.acquire(timeout=10)
        assert begun == list(range(min(taken + 2, 6)))
    assert list(stream) == []


def test_an_endless_node_whose_frames_are_all_hidden_ends_when_its_reader_has_gone(define) -> None:
    begun, ended = threading.Event(), threading.Event()

    class Hiding(Numbering):
        def transform(self, item: Any) -> Iterable[Any]:
            begun.set()
            return ()

    def endless(event: StartEvent, state: WorkflowState) -> Items:
        try:
            while True:
                yield "tick"
        finally:
            ended.set()

    stream = define(endless, stream_adapter=Hiding).events()
    assert next(stream) == ["start"]
    assert begun.wait(10)
    stream.close()
    assert ended.wait(10)


# --- the adapter for readers elsewhere --------------------------------------------------------------------------------------


class Step(Event):
    at: dt.date
    data: bytes = b"text"


def test_c312_the_type_of_an_activity_wins_over_a_type_in_its_data() -> None:
    (frame,) = JsonStreamAdapter().transform(ActivityStreamEvent("7", "indexed", {"type": "run.failed", "at": 1}))
    assert frame == StreamFrame("indexed", {"id": "7", "data": {"type": "run.failed", "at": 1}})


def test_json_frames_say_everything_in_plain_data(define, read) -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    looped: list[Any] = []
    looped.append(looped)

    def telling(event: StartEvent, state: WorkflowState) -> Items:
        yield ActivityStreamEvent("1", "counted", {"done": {1, 2}, "when": dt.date(2026, 1, 2)})
        yield Step(at=dt.date(2026, 1, 2))
        yield [Odd(), float("nan"), {1: None}, b"\xff"]
        yield Step(at=dt.date(2026, 1, 2), data=b"\xff")
        yield looped
        return StopEvent(dt.timedelta(seconds=5))

    items, error = read(define(telling, stream_adapter=JsonStreamAdapter))
    assert error is None
    assert items == [
        StreamFrame("run.started", {}),
        StreamFrame("counted", {"id": "1", "data": {"done": [1, 2], "when": "2026-01-02"}}),
        StreamFrame("run.item", {"at": "2026-01-02", "data": "text"}),
        StreamFrame("run.item", ["odd", None, {"1": None}, "_w=="]),
        StreamFrame("run.item", "at=datetime.date(2026, 1, 2) data=b'\\xff'"),
        StreamFrame("run.item", "[[...]]"),
        StreamFrame("run.ended", {"result": "PT5S"}),
    ]


def test_json_frames_say_what_is_awaited_and_which_kind_of_error_it_was(define, read, fail_once) -> None:
    def failing(event: Next, state: WorkflowState) -> StopEvent:
        memoize("answer", lambda: await_event("go"))
        fail_once("secret words")
        return StopEvent()

    definition = define(two, failing, stream_adapter=JsonStreamAdapter)
    assert read(definition)[0][-1] == StreamFrame("run.interrupted", {"interrupt": 1, "type": "wait_for_event"})
    assert read(definition, ExecutionRequest.signal("go", 1))[0][-1] == StreamFrame("run.failed", {"error": "TripError"})
