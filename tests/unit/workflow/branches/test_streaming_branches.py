"""Live items from branches that run at once."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    InterruptEvent,
    ParallelEvent,
    StartEvent,
    StopEvent,
    WorkflowState,
    WorkflowStatus,
    await_event,
    branch_id,
    emit,
    memoize,
)

NAMES = ("a", "b")


class Fork(ParallelEvent):
    pass


class Tell(Event):
    pass


class TellAsync(Event):
    pass


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({name: Tell() for name in NAMES})


def mixed(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({"a": Tell(), "b": TellAsync()})


def tell(event: Tell, state: WorkflowState) -> Generator[Any, None, StopEvent]:
    for number in range(5):
        yield (branch_id(), number)
        emit((branch_id(), f"{number} emitted"))
    return StopEvent(branch_id())


async def tell_async(event: TellAsync, state: WorkflowState) -> AsyncGenerator[Any, None]:
    for number in range(5):
        yield (branch_id(), number)
        await asyncio.sleep(0)
    yield StopEvent(branch_id())


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


@pytest.fixture(params=["events", "aio.events"])
def read(request):
    """Return what reads all items of a run, and its state, each way."""

    def plainly(definition, asked=None):
        stream = definition.events(asked)
        return list(stream), stream.state

    def on_a_loop(definition, asked=None):
        async def main():
            stream = definition.aio.events(asked)
            return [item async for item in stream], stream.state

        return asyncio.run(main())

    return plainly if request.param == "events" else on_a_loop


def of(name: str, items: list[Any]) -> list[Any]:
    return [item for branch, item in items if branch == name]


def test_each_branch_tells_its_items_in_their_order_and_none_gets_lost(concurrent, read) -> None:
    items, state = read(concurrent(fork, tell, join))
    told = [each for number in range(5) for each in (number, f"{number} emitted")]
    assert {name: of(name, items) for name in NAMES} == dict.fromkeys(NAMES, told)
    assert state.execution.result == {"a": "a", "b": "b"}


def test_plain_and_async_branches_tell_side_by_side(concurrent, read) -> None:
    items, state = read(concurrent(mixed, tell, tell_async, join))
    assert of("b", items) == list(range(5))
    assert len(of("a", items)) == 10
    assert state.execution.result == {"a": "a", "b": "b"}


def test_items_of_branches_come_live_and_interleaved(concurrent, read, gates) -> None:
    """Each branch tells its second item only when the first of the other has been told."""

    def in_turns(event: Tell, state: WorkflowState) -> Generator[Any, None, StopEvent]:
        name = branch_id() or ""
        yield (name, 0)
        gates.open(name)
        for other in NAMES:
            gates.wait(other)
        yield (name, 1)
        return StopEvent()

    items, _ = read(concurrent(fork, in_turns, join))
    assert {item for _, item in items[:2]} == {0}
    assert {branch for branch, _ in items[:2]} == set(NAMES)


def test_the_wait_of_a_branch_is_the_last_item_after_those_of_its_sibling(concurrent, read, gates, until) -> None:
    def asking(event: Tell, state: WorkflowState) -> StopEvent:
        emit(("a", "asks"))
        gates.wait("b tells")
        return StopEvent(await_event("go"))

    def telling(event: TellAsync, state: WorkflowState) -> Generator[Any, None, StopEvent]:
        gates.open("b tells")
        yield ("b", 0)
        until(lambda: concurrent().inspect().interrupt)
        yield ("b", 1)
        return StopEvent(memoize("memo", lambda: "told"))

    definition = concurrent(mixed, asking, telling, join)
    items, state = read(definition)
    assert isinstance(items[-1], InterruptEvent)
    assert of("b", items[:-1]) == [0, 1]
    assert state.is_interrupted()
    again, state = read(definition, ExecutionRequest.signal("go", 1))
    assert again == [("a", "asks")]
    assert state.execution.result == {"a": 1, "b": "told"}


def test_a_reader_who_leaves_fails_the_run_and_no_branch_writes_any_more(concurrent, store, until) -> None:
    definition = concurrent(fork, tell, join)
    with definition.events() as stream:
        next(stream)
    assert definition.inspect().status is WorkflowStatus.FAILED
    written = store.load("w")
    assert definition.run().execution.result == {"a": "a", "b": "b"}
    assert not any("tell-0" in key for key in written)


def test_a_loop_that_leaves_cancels_all_branches(concurrent) -> None:
    definition = concurrent(mixed, tell, tell_async, join)

    async def main() -> None:
        async with definition.aio.events() as stream:
            await anext(stream)
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert definition.inspect().status is WorkflowStatus.FAILED
    assert definition.run().execution.result == {"a": "a", "b": "b"}
