"""Nodes called by hand, without an engine (C135)."""

import asyncio
import datetime as dt
from collections.abc import Generator
from typing import Any

import pytest

from workflow import (
    ApprovalRequest,
    ManualClock,
    Node,
    SerializationError,
    StartEvent,
    StopEvent,
    WorkflowError,
    WorkflowState,
    amemoize,
    await_event,
    emit,
    idempotency_key,
    interrupt,
    interrupt_if,
    memoize,
    recall_memo,
    sleep_until,
)
from workflow.context import Suspension
from workflow.testing import isolated

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


class Collect:
    """An output that keeps what it is given."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def put(self, item: Any) -> None:
        self.items.append(item)

    async def put_async(self, item: Any) -> None:
        self.items.append(item)

    def put_at_once(self, item: Any) -> None:
        self.items.append(item)


class Work(Node):
    def __call__(self, event: StartEvent, state: WorkflowState) -> StopEvent:
        self.emit("begun")
        state["value"] = self.memoize("value", lambda: 41) + 1
        return StopEvent([state["value"], self.recall_memo("value"), self.recall_memo("other")])


@pytest.mark.parametrize(
    "call",
    [
        lambda: memoize("m", lambda: 1),
        lambda: asyncio.run(amemoize("m", lambda: asyncio.sleep(0))),
        lambda: recall_memo("m"),
        lambda: idempotency_key("k"),
        lambda: emit(1),
        lambda: await_event("go"),
        lambda: interrupt(ApprovalRequest("?")),
        lambda: interrupt_if(False, ApprovalRequest("?")),
        lambda: sleep_until(NOON),
        lambda: Work()(StartEvent(), WorkflowState()),
    ],
)
def test_outside_a_step_every_power_of_a_node_raises_and_says_how_to_call_it(call) -> None:
    with pytest.raises(WorkflowError, match=r"works only inside a running node.*workflow\.testing\.isolated"):
        call()


def test_c135_a_node_runs_alone() -> None:
    with isolated():
        assert Work()(StartEvent(), WorkflowState()).result == [42, 41, None]


def test_memos_last_for_the_block_and_no_longer() -> None:
    made: list[int] = []
    for block in (1, 2):
        with isolated():
            for _ in range(3):
                assert memoize("m", lambda block=block: made.append(block) or block) == block
    assert made == [1, 2]


def test_a_memo_must_be_storable_here_too() -> None:
    with isolated(), pytest.raises(SerializationError):
        memoize("m", object)


def test_async_nodes_and_their_memos_run_alone() -> None:
    async def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        async def one() -> int:
            return 1

        return StopEvent(await amemoize("m", one))

    async def main() -> Any:
        with isolated():
            return (await work(StartEvent(), WorkflowState())).result

    assert asyncio.run(main()) == 1


def test_items_go_nowhere_or_where_the_test_wants_them() -> None:
    def work(event: StartEvent, state: WorkflowState) -> Generator[str, None, StopEvent]:
        emit("emitted")
        yield "yielded"
        return StopEvent()

    with isolated():
        assert list(work(StartEvent(), WorkflowState())) == ["yielded"]
    output = Collect()
    with isolated(output=output):
        assert list(work(StartEvent(), WorkflowState())) == ["yielded"]
    assert output.items == ["emitted"]


def test_a_wait_raises_the_engines_own_signal_and_the_step_says_what_for() -> None:
    with isolated(clock=ManualClock(NOON)) as step:
        with pytest.raises(Suspension):
            interrupt(ApprovalRequest("delete?", expires_at=NOON))
        assert step.suspended_on is not None
        request = step.suspended_on.request
        assert isinstance(request, ApprovalRequest)
        assert (request.message, request.deadline) == ("delete?", NOON)
        assert interrupt_if(False, ApprovalRequest("no")) is None


def test_the_workflow_id_gives_the_keys_for_outside_systems() -> None:
    def key(workflow_id: str) -> str:
        with isolated(workflow_id=workflow_id) as step:
            assert step.store.workflow_id == workflow_id
            assert idempotency_key("k") == idempotency_key("k") != idempotency_key("l")
            return idempotency_key("k")

    assert key("a") != key("b")


def test_blocks_nest_and_the_outer_step_is_the_current_one_again() -> None:
    with isolated():
        memoize("m", lambda: "outer")
        with isolated():
            assert recall_memo("m") is None
        assert recall_memo("m") == "outer"
    with pytest.raises(WorkflowError):
        recall_memo("m")
