"""The same calls for asyncio: `Workflow.aio`, `WorkflowEngine.aio`, and live items read by tasks."""

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from workflow import (
    Event,
    ExecutionRequest,
    InterruptEvent,
    RefusalReason,
    RunInFlightError,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    emit,
)

PATIENCE = 10.0
"""Seconds after which something that has not come fails its test."""
STREAMS = 40
"""More than the threads of an event loop's own pool on any machine that runs these tests."""


class Next(Event):
    pass


def plain(event: StartEvent, state: WorkflowState) -> Generator[Any, None, StopEvent]:
    yield from "abcd"
    return StopEvent("done")


async def asynchronous(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
    for item in "abcd":
        yield item
    yield StopEvent("done")


NODES = {"plain": plain, "async": asynchronous}
kinds = pytest.mark.parametrize("kind", NODES)


def on_loop(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run on a loop of its own, with patience."""

    async def patient() -> Any:
        return await asyncio.wait_for(main(), PATIENCE)

    return asyncio.run(patient())


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until something is so."""
    while not condition():
        await asyncio.sleep(0.001)


def stopped(definition: Workflow) -> bool:
    """Whether the current run is failed because its reader has gone."""
    seen = definition.inspect()
    return seen is not None and seen.failure is not None and "the consumer stopped" in seen.failure.message


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


# --- the calls --------------------------------------------------------------------------------------------------------------


def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
    return StopEvent(await_event("go"))


def test_every_call_of_a_workflow_has_its_twin(define) -> None:
    definition = define(ask, retain_completion=True)

    async def main() -> None:
        calls = definition.aio
        assert await calls.inspect() is None
        run_id = await calls.ignite(tag="t")
        assert (await calls.inspect()).tag == "t"
        assert (await calls.run(ExecutionRequest.resume())).is_interrupted()
        pending = await calls.submit_inputs({"n": 1}, lambda payload, request: {**payload, "for": request.id})
        assert (await pending.aio.run()).execution.result == {"n": 1, "for": 1}
        await calls.acknowledge(run_id)
        await calls.run()
        assert await calls.abandon() is True
        await calls.run()
        assert await calls.cancel() is True
        assert (await calls.inspect()).status is WorkflowStatus.CANCELLED

    on_loop(main)


def test_every_call_of_an_engine_has_its_twin(define, store, clock) -> None:
    definition = define(ask, retain_completion=True)
    engine = WorkflowEngine(store, clock=clock)

    async def main() -> None:
        run_id = definition.ignite()
        assert (await engine.aio.inspect("w")).run_id == run_id
        assert await engine.aio.cancel("w", run_id, retain=True) is True
        await engine.aio.acknowledge("w", run_id)
        assert await engine.aio.cancel("w") is False
        run_id = definition.ignite()
        with pytest.raises(WorkflowRefusedError) as refused:
            await engine.aio.abandon("w", run_id, 5)
        assert refused.value.reason is RefusalReason.STALE_ATTEMPT
        assert await engine.aio.abandon("w", run_id, 0) is True

    on_loop(main)


def test_the_plain_stream_is_refused_on_an_event_loop(define, store) -> None:
    async def main() -> None:
        with pytest.raises(WorkflowError, match=r"aio\.events"):
            next(define(plain).events())

    on_loop(main)
    assert store.calls == []


# --- items ------------------------------------------------------------------------------------------------------------------


@kinds
def test_items_are_read_by_a_task_and_the_state_comes_last(define, kind) -> None:
    async def main() -> None:
        async with define(NODES[kind]).aio.events() as stream:
            assert [item async for item in stream] == [*"abcd"]
        assert stream.state.execution.result == "done"
        assert [item async for item in stream] == []

    on_loop(main)


def test_a_submitted_answer_can_be_streamed(define) -> None:
    async def work(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        yield "before"
        answer = await_event("go")
        yield answer
        yield StopEvent(answer)

    definition = define(work)

    async def main() -> None:
        stream = definition.aio.events()
        items = [item async for item in stream]
        assert items == ["before", InterruptEvent(stream.state.interrupt_request)]
        resumed = (await definition.aio.submit_inputs(7)).aio.events()
        assert [item async for item in resumed] == ["before", 7]
        assert resumed.state.execution.result == 7

    on_loop(main)


@pytest.mark.parametrize("host", ["plain", "aio"])
def test_the_last_event_of_an_async_generator_is_its_result(define, host) -> None:
    """Whatever comes behind it; events before it are items like any other."""

    async def work(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        yield 1
        yield Next()
        yield StopEvent("not the last")
        yield None
        yield StopEvent("the last")
        yield 2
        emit(3)

    definition = define(work)
    items, state = read(definition, host)
    assert [item for item in items if not isinstance(item, Event)] == [1, None, 2, 3]
    assert [item for item in items if isinstance(item, Event)] == [Next(), StopEvent("not the last")]
    assert state.execution.result == "the last"


def read(definition: Workflow, host: str) -> tuple[list[Any], WorkflowState]:
    """The items and the state of a run, by either kind of stream."""
    if host == "plain":
        stream = definition.events()
        return list(stream), stream.state

    async def main() -> tuple[list[Any], WorkflowState]:
        stream = definition.aio.events()
        return [item async for item in stream], stream.state

    return on_loop(main)


def test_refusals_and_errors_surface_where_the_items_are_read(define) -> None:
    error = ValueError("as it is")

    async def work(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        for number in range(3):
            yield number
        raise error

    async def main() -> None:
        definition = define(work)
        stream = definition.aio.events()
        assert await anext(stream) == 0
        with pytest.raises(RunInFlightError):
            await anext(definition.aio.events())
        assert [await anext(stream), await anext(stream)] == [1, 2]
        with pytest.raises(ValueError, match="as it is") as raised:
            await anext(stream)
        assert raised.value is error
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert definition.inspect().failure.message == "as it is"

    on_loop(main)


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_slow_reader_slows_the_run_and_not_the_loop(define, kind) -> None:
    begun: list[int] = []

    def plain(event: StartEvent, state: WorkflowState) -> Generator[Any, None, StopEvent]:
        for number in range(5):
            begun.append(number)
            yield number
        return StopEvent()

    async def asynchronous(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        for number in range(5):
            begun.append(number)
            yield number
        yield StopEvent()

    async def main() -> None:
        stream = define(plain if kind == "plain" else asynchronous).aio.events()
        for taken in range(1, 6):
            assert await anext(stream) == taken - 1
            await until(lambda taken=taken: len(begun) == min(taken + 2, 5))
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(begun) == min(taken + 2, 5)
        assert [item async for item in stream] == []

    on_loop(main)


@kinds
def test_many_streams_are_read_at_once(kind) -> None:
    """A reader that waits holds no thread: the threads are for the stores and the nodes."""

    async def one(number: int) -> list[Any]:
        return [item async for item in Workflow(f"w{number}", nodes=[NODES[kind]]).aio.events()]

    async def main() -> None:
        assert await asyncio.gather(*[one(number) for number in range(STREAMS)]) == [[*"abcd"]] * STREAMS

    on_loop(main)


@kinds
def test_streams_whose_readers_are_slow_do_not_hold_up_the_others(kind) -> None:
    async def main() -> None:
        slow = [Workflow(f"w{number}", nodes=[NODES[kind]]).aio.events() for number in range(STREAMS)]
        for _ in range(2):
            assert {await anext(stream) for stream in slow} in ({"a"}, {"b"})
        quick = Workflow("quick", nodes=[NODES[kind]])
        assert [item async for item in quick.aio.events()] == [*"abcd"]
        assert (await quick.aio.run()).execution.result == "done"
        for stream in slow:
            await stream.aclose()

    on_loop(main)


def test_plain_streams_of_async_generators_hold_up_no_memo_of_another() -> None:
    """They share one loop thread: what waits for a slow reader there must not take the threads that memos need."""

    async def remembering(event: StartEvent, state: WorkflowState) -> StopEvent:
        async def one() -> int:
            return 1

        return StopEvent(await amemoize("one", one))

    slow = [Workflow(f"w{number}", nodes=[asynchronous]).events() for number in range(STREAMS)]
    for stream in slow:
        assert [next(stream), next(stream)] == ["a", "b"]
    assert Workflow("quick", nodes=[remembering]).run().execution.result == 1
    for stream in slow:
        stream.close()


# --- the reader stops -------------------------------------------------------------------------------------------------------


@kinds
def test_leaving_the_block_early_fails_the_run_and_run_recovers_it(define, kind) -> None:
    definition = define(NODES[kind])

    async def main() -> None:
        async with definition.aio.events() as stream:
            async for _ in stream:
                break
        assert stopped(definition)
        assert (await definition.aio.run()).execution.attempt == 2

    on_loop(main)


@kinds
def test_a_task_that_is_cancelled_while_it_reads_fails_the_run_when_it_leaves_the_block(define, kind) -> None:
    gate = threading.Event()

    def slow(event: StartEvent, state: WorkflowState) -> Generator[Any, None, StopEvent]:
        yield "a"
        gate.wait(PATIENCE)
        return StopEvent()

    async def slow_async(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        yield "a"
        await asyncio.Event().wait()

    definition = define(slow if kind == "plain" else slow_async)
    seen: list[Any] = []

    async def reader() -> None:
        async with definition.aio.events() as stream:
            seen.append(await anext(stream))
            await anext(stream)

    async def main() -> None:
        task = asyncio.create_task(reader())
        await until(lambda: seen == ["a"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stopped(definition)
        gate.set()

    on_loop(main)


def test_a_reader_that_gives_up_waiting_loses_no_item(define) -> None:
    async def work(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        await go_on.wait()
        yield "late"
        yield StopEvent()

    go_on: asyncio.Event

    async def main() -> None:
        nonlocal go_on
        go_on = asyncio.Event()
        stream = define(work).aio.events()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.01)
        go_on.set()
        assert [item async for item in stream] == ["late"]

    on_loop(main)


def test_closing_cancels_an_async_node_so_that_it_can_clean_up(define) -> None:
    cleaned: list[str] = []

    async def work(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            cleaned.append("node")
        yield StopEvent()

    async def main() -> None:
        stream = define(work).aio.events()
        assert await anext(stream) == "a"
        await stream.aclose()
        await stream.aclose()
        await until(lambda: cleaned == ["node"])

    on_loop(main)


@pytest.mark.parametrize("call", ["initialize_if_absent", "load", "write_if_unchanged"])
def test_closing_while_the_run_is_being_taken_leaves_none_that_looks_alive(define, store, call) -> None:
    there, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def asking(event: StartEvent, state: WorkflowState) -> StopEvent:
        if there.is_set():
            assert closed.wait(PATIENCE)
        return StopEvent(await_event("go"))

    definition = define(asking, lease_timeout=60, lease_renewal=False)
    request = None if call == "initialize_if_absent" else ExecutionRequest.resume(1)
    if request is not None:
        definition.run()

    def hold(made: Any) -> None:
        if made.name == call and not there.is_set():
            there.set()
            assert go_on.wait(PATIENCE)

    store.before = hold

    async def main() -> None:
        stream = definition.aio.events(request)
        reading = asyncio.create_task(anext(stream))
        await until(there.is_set)
        reading.cancel()
        closing = asyncio.create_task(stream.aclose())
        if call == "load":
            await closing  # a write is waited for, a read is not
        go_on.set()
        await closing
        closed.set()

    on_loop(main)
    assert definition.inspect().status is (WorkflowStatus.SUSPENDED if call == "load" else WorkflowStatus.FAILED)


@kinds
@pytest.mark.parametrize("ending", ["drop", "loop ends"])
def test_a_stream_that_nobody_closes_fails_its_run_and_hangs_nothing(kind, ending) -> None:
    definition = Workflow("w", nodes=[NODES[kind]], persistence=InMemoryPersistence())
    kept: list[Any] = []

    async def main() -> None:
        stream = definition.aio.events()
        assert await anext(stream) == "a"
        if ending == "loop ends":
            kept.append(stream)
            return
        del stream
        gc.collect()
        await until(lambda: stopped(definition))

    on_loop(main)
    assert definition.inspect().status is WorkflowStatus.FAILED
    assert definition.run().execution.result == "done"


def test_stopping_after_the_run_has_settled_changes_nothing(define, store) -> None:
    definition = define(ask)

    async def main() -> None:
        async with definition.aio.events() as stream:
            assert isinstance(await anext(stream), InterruptEvent)
        before = store.load("w")
        async with definition.aio.events(ExecutionRequest.resume()) as polled:
            assert [item async for item in polled] == []
        assert store.load("w") == before

    on_loop(main)
    assert definition.inspect().status is WorkflowStatus.SUSPENDED
