"""Frames are pushed to somebody else, whose trouble never alters a run (P)."""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Generator, Iterable
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from tests.unit.workflow.streams import Capturing, Numbering
from workflow import (
    CallbackChannel,
    ConcurrentBranchRunner,
    Envelope,
    Event,
    ExecutionRequest,
    InterruptEvent,
    ParallelEvent,
    StartEvent,
    StopEvent,
    StreamAdapter,
    StreamFrame,
    Workflow,
    WorkflowState,
    WorkflowStatus,
    await_event,
    branch_id,
    emit,
)
from workflow.observing import ChannelFailed, Ending, Observation, WorkflowEnded
from workflow.outbox import ROOM

Items = Generator[Any, None, Event]
LIMIT = 30
"""Seconds after which a test here counts as hung."""

pytestmark = pytest.mark.timeout(LIMIT)


class Next(Event):
    pass


def two(event: StartEvent, state: WorkflowState) -> Items:
    yield "a"
    yield "b"
    return Next()


def end(event: Next, state: WorkflowState) -> StopEvent:
    emit("c")
    state["seen"] = [1]
    return StopEvent("done")


def ask(event: Next, state: WorkflowState) -> StopEvent:
    emit("asking")
    return StopEvent(await_event("go"))


def fail(event: Next, state: WorkflowState) -> StopEvent:
    raise KeyError("its own")


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


def _run(definition: Workflow, request: ExecutionRequest | None) -> WorkflowState:
    return definition.run(request)


def _events(definition: Workflow, request: ExecutionRequest | None) -> WorkflowState:
    stream = definition.events(request)
    for _ in stream:
        pass
    return stream.state


def _aio_run(definition: Workflow, request: ExecutionRequest | None) -> WorkflowState:
    async def main() -> WorkflowState:
        return await definition.aio.run(request)

    return asyncio.run(main())


def _aio_events(definition: Workflow, request: ExecutionRequest | None) -> WorkflowState:
    async def main() -> WorkflowState:
        stream = definition.aio.events(request)
        async for _ in stream:
            pass
        return stream.state

    return asyncio.run(main())


@pytest.fixture(params=[_run, _events, _aio_run, _aio_events], ids=["run", "events", "aio.run", "aio.events"])
def call(request):
    """Return what calls a workflow, each way."""
    return lambda definition, asked=None: request.param(definition, asked)


@pytest.fixture
def impatient(monkeypatch) -> None:
    """Let runs give a channel up at once."""
    monkeypatch.setattr("workflow.outbox.PATIENCE", 0.3)


@pytest.fixture
def gate():
    """Return an event that is always set in the end, so that no thread is left behind."""
    event = threading.Event()
    yield event
    event.set()


FRAMES = [["start"], ["item", "a"], ["item", "b"], ["item", "c"], ["end", "done"]]


# --- what gets there --------------------------------------------------------------------------------------------------------


def test_c258_reader_and_channel_get_the_same_objects_in_the_same_order(define) -> None:
    channel = Capturing()
    pulled = list(define(two, end, stream_adapter=Numbering, channel=channel).events())
    assert pulled == channel.sent == FRAMES
    assert all(one is other for one, other in zip(pulled, channel.sent, strict=True))
    assert channel.ends[0][0] == "completed"


def test_c258_every_way_to_call_a_run_feeds_its_channel(define, call) -> None:
    channel = Capturing()
    state = call(define(two, end, stream_adapter=Numbering, channel=channel))
    assert channel.sent == FRAMES
    assert channel.opened == [("w", state.execution.run_id, 1)]


def test_c258_branches_at_once_come_in_one_order(define, call) -> None:
    class Fork(ParallelEvent):
        pass

    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({name: Next() for name in "abcd"})

    def tell(event: Next, state: WorkflowState) -> Items:
        for number in range(20):
            yield (branch_id(), number)
        return StopEvent()

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent()

    class Counting(StreamAdapter):
        """Is called by one at a time, and its frames are seen in the order in which it made them."""

        def __init__(self) -> None:
            self.count = 0

        def transform(self, item: Any) -> Iterable[Any]:
            for part in ("begin", "end"):
                self.count += 1
                yield (self.count, part, item)

    channel = Capturing()
    options = {"branch_runner": ConcurrentBranchRunner(), "stream_adapter": Counting, "channel": channel}
    call(define(fork, tell, join, **options))
    assert [count for count, _, _ in channel.sent] == list(range(1, 161))
    pulled = list(define(fork, tell, join, workflow_id="again", **{**options, "channel": (other := Capturing())}).events())
    assert pulled == other.sent


def test_c259_without_an_adapter_a_channel_hears_only_the_end(define, call) -> None:
    channel = Capturing()
    definition = define(two, ask, channel=channel)
    call(definition)
    assert channel.sent == []
    ((how, state),) = channel.ends
    assert (how, state.interrupt_request) == ("interrupted", definition.inspect().interrupt)
    call(definition, ExecutionRequest.signal("go", 5))
    assert channel.sent == []
    assert [how for how, _ in channel.ends] == ["interrupted", "completed"]
    assert [attempt for _, _, attempt in channel.opened] == [1, 2]


def test_without_an_adapter_the_reader_gets_native_items_and_the_event_of_the_suspension(define) -> None:
    *items, last = define(two, ask, channel=Capturing()).events()
    assert (items, type(last)) == (["a", "b", "asking"], InterruptEvent)


def test_a_failure_is_told_with_the_error_itself_after_it_is_recorded(define, call) -> None:
    statuses: list[WorkflowStatus] = []

    class Looking(Capturing):
        def failed(self, error: BaseException) -> None:
            statuses.append(definition.inspect().status)
            super().failed(error)

    channel = Looking()
    definition = define(two, fail, stream_adapter=Numbering, channel=channel)
    with pytest.raises(KeyError) as raised:
        call(definition)
    assert channel.ends == [("failed", raised.value)]
    assert channel.sent[-1] == ["error", raised.value]
    assert statuses == [WorkflowStatus.FAILED]


def test_c311_what_a_channel_or_an_adapter_does_to_the_state_changes_nothing(define, call) -> None:
    class Spoiling(Capturing):
        def completed(self, state: WorkflowState) -> None:
            state["seen"].append(2)
            state["more"] = 3
            super().completed(state)

    class SpoilingAdapter(Numbering):
        def end(self, state: WorkflowState) -> Iterable[Any]:
            state["seen"].clear()
            return super().end(state)

    channel = Spoiling()
    definition = define(two, end, channel=channel, stream_adapter=SpoilingAdapter, retain_completion=True)
    state = call(definition)
    assert channel.ends[0][1].all() == {"seen": [1, 2], "more": 3}
    assert state.all() == {"seen": [1]}
    assert call(definition, ExecutionRequest.resume()).all() == {"seen": [1]}


def test_c111_a_channel_is_told_when_the_reader_has_gone(define, gate) -> None:
    class Telling(Capturing):
        def failed(self, error: BaseException) -> None:
            super().failed(error)
            gate.set()

    channel = Telling()
    with define(two, end, stream_adapter=Numbering, channel=channel).events() as stream:
        next(stream)
    assert gate.wait(10)
    assert [how for how, _ in channel.ends] == ["failed"]
    assert channel.sent[-1][0] == "error"


def test_a_task_cancelled_at_the_moment_of_completion_tells_the_outcome_that_is_recorded(define, store) -> None:
    channel = Capturing()
    definition = define(two, end, stream_adapter=Numbering, channel=channel, retain_completion=True)
    tasks: list[asyncio.Task[Any]] = []

    def cancel(recorded: Any) -> None:
        if b'"status":"completed"' not in recorded.records.get("__control", b""):
            return
        cancelled = threading.Event()
        tasks[0].get_loop().call_soon_threadsafe(lambda: (tasks[0].cancel(), cancelled.set()))
        assert cancelled.wait(10)

    async def main() -> None:
        store.before = cancel
        tasks.append(asyncio.ensure_future(definition.aio.run()))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    asyncio.run(main())
    assert definition.inspect().status is WorkflowStatus.COMPLETED
    assert [how for how, _ in channel.ends] == ["completed"]
    assert channel.sent[-1] == ["end", "done"]


def test_a_segment_without_a_channel_has_no_thread_for_one(define) -> None:
    names: list[str] = []

    def look(event: StartEvent, state: WorkflowState) -> StopEvent:
        names.extend(thread.name for thread in threading.enumerate())
        return StopEvent()

    define(look, stream_adapter=Numbering).run()
    assert "workflow-channel" not in names
    define(look, channel=Capturing()).run()
    assert "workflow-channel" in names


def test_the_thread_of_a_channel_ends_with_its_segment(define, call) -> None:
    before = threading.active_count()
    for number in range(3):
        call(define(two, end, channel=Capturing(), stream_adapter=Numbering, workflow_id=f"w{number}"))
    for thread in threading.enumerate():
        if thread.name == "workflow-channel":
            thread.join(10)
            assert not thread.is_alive()
    assert threading.active_count() <= before + 3  # the threads of loops are kept


def test_a_channel_may_come_from_the_hook_and_the_constructor_wins(define, call) -> None:
    hooked, given = Capturing(), Capturing()

    class Hooked(Workflow):
        def channel(self) -> Capturing:
            return hooked

    call(define(two, end, cls=Hooked))
    call(define(two, end, cls=Hooked, channel=given, workflow_id="v"))
    assert [(one[0], channel) for channel in (hooked, given) for one in channel.opened] == [("w", hooked), ("v", given)]


# --- channels in trouble ----------------------------------------------------------------------------------------------------


def failures(told: list[Observation]) -> list[str]:
    return [str(one.error) for one in told if isinstance(one, ChannelFailed)]


def test_c260_each_failed_send_is_reported_and_the_run_is_unaffected(define, call, caplog) -> None:
    told: list[Observation] = []
    channel = Capturing("send")
    with caplog.at_level(logging.WARNING):
        state = call(define(two, end, stream_adapter=Numbering, channel=channel, listeners=[told.append]))
    assert state.execution.result == "done"
    assert channel.sent == FRAMES
    # The last frame is sent when everything is settled and told: its failure is swallowed.
    assert failures(told) == ["send fails"] * 4
    assert [how for how, _ in channel.ends] == ["completed"]
    assert isinstance(told[-1], WorkflowEnded)
    assert told[-1].outcome is Ending.COMPLETED
    assert caplog.text.count("the channel of workflow 'w' fails") == 1


@pytest.mark.parametrize("last", [end, ask, fail])
def test_c260_a_last_call_that_fails_is_swallowed(define, call, last) -> None:
    told: list[Observation] = []
    definition = define(two, last, channel=Capturing("end"), listeners=[told.append], retain_completion=True)
    if last is fail:
        with pytest.raises(KeyError):
            call(definition)
    else:
        call(definition)
    expected = {end: WorkflowStatus.COMPLETED, ask: WorkflowStatus.SUSPENDED, fail: WorkflowStatus.FAILED}
    assert definition.inspect().status is expected[last]
    assert failures(told) == []


@pytest.mark.parametrize("how", ["open", "hook", "none"])
def test_a_channel_that_cannot_be_opened_is_reported_and_does_without(define, call, how) -> None:
    told: list[Observation] = []

    class Hooked(Workflow):
        def channel(self) -> Any:
            if how == "none":
                return None
            if how == "hook":
                raise ConnectionError("open fails")
            return Capturing("open")

    state = call(define(two, end, cls=Hooked, stream_adapter=Numbering, listeners=[told.append]))
    assert state.execution.result == "done"
    assert failures(told) == ([] if how == "none" else ["open fails"])


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_whatever_a_channel_raises_the_run_goes_on(define, call, raised) -> None:
    class Raising(Capturing):
        def send(self, frame: Any) -> None:
            raise raised

    channel = Raising()
    assert call(define(two, end, stream_adapter=Numbering, channel=channel)).execution.result == "done"
    assert [how for how, _ in channel.ends] == ["completed"]


class Hanging(Capturing):
    """Hangs at one kind of call until the gate opens."""

    def __init__(self, at: str, gate: threading.Event) -> None:
        super().__init__()
        self.at = at
        self.gate = gate
        self.released = threading.Event()

    def _maybe(self, call: str) -> "Hanging":
        if call == self.at:
            self.gate.wait(LIMIT)
        if call == "end":
            self.released.set()
        return self


@pytest.mark.parametrize("at", ["open", "send", "end"])
@pytest.mark.usefixtures("impatient")
def test_a_channel_that_hangs_does_not_hang_the_run(define, call, gate, at, caplog) -> None:
    def many(event: StartEvent, state: WorkflowState) -> Items:
        yield from range(3 * ROOM)
        return Next()

    told: list[Observation] = []
    channel = Hanging(at, gate)
    options = {"stream_adapter": Numbering, "channel": channel, "listeners": [told.append]}
    with caplog.at_level(logging.WARNING):
        assert call(define(many, end, **options)).execution.result == "done"
    assert caplog.text.count("longer than 0.3 s") == 1
    assert failures(told) == ([] if at == "end" else ["the channel took longer than 0.3 s"])
    # Should it come round, it hears the end, and none of the frames that were waiting.
    gate.set()
    assert channel.released.wait(10)
    assert [how for how, _ in channel.ends] == ["completed"]
    assert len(channel.sent) == {"open": 0, "send": 1}.get(at, 3 * ROOM + 3)


@pytest.mark.usefixtures("impatient")
def test_an_async_node_does_not_stop_its_loop_for_a_channel_that_hangs(define, gate) -> None:
    ticks: list[int] = []

    async def many(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        for number in range(3 * ROOM):
            yield number
        yield Next()

    async def main() -> WorkflowState:
        async def tick() -> None:
            while True:
                ticks.append(1)
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        state = await define(many, end, stream_adapter=Numbering, channel=Hanging("send", gate)).aio.run()
        ticking.cancel()
        return state

    assert asyncio.run(main()).execution.result == "done"
    assert len(ticks) > 100


def test_a_slow_channel_slows_the_run_and_holds_a_bounded_number_of_frames(define, gate) -> None:
    begun: list[int] = []

    def many(event: StartEvent, state: WorkflowState) -> Items:
        for number in range(4 * ROOM):
            begun.append(number)
            yield number
        return StopEvent()

    ahead: list[int] = []

    class Slow(Capturing):
        def send(self, frame: Any) -> None:
            super().send(frame)
            ahead.append(len(begun) - len(self.sent))

    define(many, stream_adapter=StreamAdapter, channel=Slow()).run()
    assert len(begun) == 4 * ROOM
    assert max(ahead) <= ROOM + 1


# --- the callback channel ---------------------------------------------------------------------------------------------------


class Plain(StreamAdapter):
    def transform(self, item: Any) -> Iterable[Any]:
        return (StreamFrame("item", item), {"bare": item})


def test_a_callback_gets_numbered_envelopes_each_segment_being_a_stream_of_its_own(define, call) -> None:
    got: list[Envelope] = []
    definition = define(two, ask, stream_adapter=Plain, channel=CallbackChannel(got.append))
    run_id = call(definition).execution.run_id
    contents = [("item", "a"), ("frame", {"bare": "a"}), ("item", "b"), ("frame", {"bare": "b"})]
    contents += [("item", "asking"), ("frame", {"bare": "asking"}), ("stream.interrupted", {"workflow_id": "w"})]
    assert got == [Envelope("w", run_id, f"{run_id}.1", number, *content) for number, content in enumerate(contents)]
    got.clear()
    call(definition, ExecutionRequest.signal("go", 1))
    assert [(one.stream_id, one.sequence, one.type) for one in got] == [
        (f"{run_id}.2", 0, "item"),
        (f"{run_id}.2", 1, "frame"),
        (f"{run_id}.2", 2, "stream.completed"),
    ]


def test_c263_a_callback_that_has_raised_gets_no_more_frames_but_the_end(define, call) -> None:
    got: list[Envelope] = []
    told: list[Observation] = []

    def picky(envelope: Envelope) -> None:
        got.append(envelope)
        if envelope.data == "b":
            raise ConnectionError("gone")

    definition = define(two, fail, stream_adapter=Plain, channel=CallbackChannel(picky), listeners=[told.append])
    with pytest.raises(KeyError):
        call(definition)
    assert [one.type for one in got] == ["item", "frame", "item", "stream.failed"]
    assert failures(told) == ["gone"]
    assert got[-1].data == {"workflow_id": "w"}


def test_one_callback_channel_serves_runs_at_once(define) -> None:
    got: list[Envelope] = []
    channel = CallbackChannel(got.append)

    async def main() -> None:
        runs = [define(two, end, stream_adapter=Plain, channel=channel, workflow_id=f"w{number}") for number in range(5)]
        await asyncio.gather(*(run.aio.run() for run in runs))

    asyncio.run(main())
    for number in range(5):
        mine = [one.sequence for one in got if one.workflow_id == f"w{number}"]
        assert mine == list(range(7))


@pytest.mark.parametrize("moment", ["drain", "adapter", "channel"])
def test_a_task_cancelled_while_it_tells_its_end_still_tells_everybody(define, gate, moment) -> None:
    reached = threading.Event()
    told: list[Observation] = []

    def stop(here: str) -> None:
        if here == moment:
            reached.set()
            assert gate.wait(10)

    class Stopping(Capturing):
        def send(self, frame: Any) -> None:
            super().send(frame)
            if frame == ["item", "c"]:
                stop("drain")

        def completed(self, state: WorkflowState) -> None:
            stop("channel")
            super().completed(state)

    class StoppingAdapter(Numbering):
        def end(self, state: WorkflowState) -> Iterable[Any]:
            stop("adapter")
            return super().end(state)

    channel = Stopping()
    definition = define(
        two, end, stream_adapter=StoppingAdapter, channel=channel, listeners=[told.append], retain_completion=True
    )

    async def main() -> None:
        task = asyncio.create_task(definition.aio.run())
        while not reached.is_set() or definition.inspect().status is not WorkflowStatus.COMPLETED:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert channel.sent == FRAMES
    assert [how for how, _ in channel.ends] == ["completed"]
    assert isinstance(told[-1], WorkflowEnded)


def test_a_listener_that_ends_the_program_leaves_no_thread_of_a_channel(define) -> None:
    def leave(observation: Observation) -> None:
        if isinstance(observation, WorkflowEnded):
            raise SystemExit

    channel = Capturing()
    with pytest.raises(SystemExit):
        define(two, end, channel=channel, listeners=[leave]).run()
    assert [how for how, _ in channel.ends] == ["completed"]
