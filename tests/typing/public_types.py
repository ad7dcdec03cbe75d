"""What a type checker must see of the public surface. Read by pyright, run by nobody."""

import datetime as dt
from collections.abc import AsyncGenerator, Awaitable, Generator, Iterable
from typing import Any, assert_type

from workflow import (
    ApprovalRequest,
    AsyncEventStream,
    Event,
    EventStream,
    ExecutionRequest,
    InterruptRequest,
    Middleware,
    Node,
    PendingExecution,
    RefusalReason,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowEngine,
    WorkflowRefusedError,
    WorkflowResources,
    WorkflowRunSnapshot,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    idempotency_key,
    memoize,
    recall_memo,
    sleep_until,
)


class OrderPlaced(Event):
    number: int
    note: str | None = None


class OrderState(WorkflowState):
    total: float = 0.0
    notes: tuple[str, ...] = ()


class Shop(WorkflowResources):
    name: str = "shop"


class Confirm(Node):
    async def __call__(self, event: OrderPlaced, state: OrderState, resources: Shop) -> StopEvent:
        async def fetch() -> bytes:
            return b""

        assert_type(event.number, int)
        assert_type(event.note, str | None)
        assert_type(state.total, float)
        assert_type(resources.name, str)
        assert_type(await self.amemoize("a", fetch), bytes)
        assert_type(self.memoize("b", lambda: 1), int)
        return StopEvent(result=state.total)


def plain(event: OrderPlaced, state: OrderState) -> StopEvent:
    assert_type(memoize("a", lambda: [event.number]), list[int])
    assert_type(idempotency_key("a"), str)
    assert_type(recall_memo("a"), Any)
    assert_type(await_event("paid", expires_at=dt.datetime.now(dt.UTC)), Any)
    sleep_until(dt.datetime.now(dt.UTC))
    return StopEvent()


def streaming(event: OrderPlaced, state: OrderState) -> Generator[str, None, StopEvent]:
    yield "item"
    return StopEvent()


async def streaming_async(event: OrderPlaced, state: OrderState) -> AsyncGenerator[str | StopEvent, None]:
    async def one() -> int:
        return 1

    assert_type(await amemoize("a", one), int)
    yield "item"
    yield StopEvent()


class Audit(Middleware):
    async def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> Event | None:
        return event

    def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> Awaitable[None] | None:
        return None


class Orders(Workflow[OrderState]):
    """Every hook, overridden with a narrower type."""

    name = "orders"
    lease_timeout = 60
    max_steps = 10
    retain_for = 3600.0
    version = "2"
    compatible_versions = ("1",)

    def declared_id(self) -> str | None:
        return "orders:1"

    def nodes(self) -> list[Any]:
        return [Confirm(), plain, streaming, streaming_async]

    def start_event(self) -> OrderPlaced:
        return OrderPlaced(number=1)

    def state(self) -> OrderState:
        return OrderState(total=1.0)

    def resources(self) -> Shop:
        return Shop()

    def middleware(self) -> Iterable[Middleware | tuple[Any, Middleware]]:
        return [Audit(), (Confirm, Audit())]


class ExpressOrders(Orders):
    """A subclass of a typed definition keeps its state's class."""


def a_typed_definition(orders: Orders) -> None:
    assert_type(orders.run(), OrderState)
    assert_type(orders.run(ExecutionRequest.resume({"paid": True})), OrderState)
    assert_type(orders.run().total, float)
    assert_type(orders.run().execution.status, WorkflowStatus)
    assert_type(orders.run().interrupt_request, InterruptRequest | None)
    assert_type(orders.events(), EventStream[OrderState])
    with orders.events() as stream:
        for item in stream:
            assert_type(item, Any)
        assert_type(stream.state, OrderState)
    assert_type(orders.submit_inputs({"paid": True}), PendingExecution[OrderState])
    assert_type(orders.submit_inputs("y", answer_of).run(), OrderState)
    assert_type(orders.submit_inputs("y").events().state, OrderState)
    assert_type(orders.for_id("orders:2"), Orders)
    assert_type(orders.reconfigure(max_steps=None), Orders)
    assert_type(orders.ignite(OrderPlaced(number=1), run_id="r", tag="t"), str)
    assert_type(orders.inspect(), WorkflowRunSnapshot | None)
    assert_type(orders.abandon("r", 1), bool)
    assert_type(orders.acknowledge("r"), None)
    assert_type(orders.cancel(), bool)


def answer_of(payload: Any, request: InterruptRequest) -> dict[str, Any]:
    assert_type(request.id, int)
    assert_type(request.deadline, dt.datetime | None)
    return {"approved": payload == "y"}


def definitions_of_every_kind() -> None:
    assert_type(ExpressOrders().run(), OrderState)
    assert_type(ExpressOrders().for_id("a"), ExpressOrders)
    assert_type(Workflow("w", nodes=[plain], state=OrderState()).run(), OrderState)
    assert_type(Workflow[OrderState]("w").run(), OrderState)
    assert_type(Workflow("w").run(), WorkflowState)


async def the_calls_for_asyncio(orders: Orders) -> None:
    assert_type(await orders.aio.run(), OrderState)
    assert_type(orders.aio.events(), AsyncEventStream[OrderState])
    async with orders.aio.events() as stream:
        async for item in stream:
            assert_type(item, Any)
    assert_type(stream.state, OrderState)
    assert_type(await orders.aio.inspect(), WorkflowRunSnapshot | None)
    assert_type(await orders.aio.cancel(), bool)
    pending = await orders.aio.submit_inputs({})
    assert_type(pending, PendingExecution[OrderState])
    assert_type(await pending.aio.run(), OrderState)
    assert_type(pending.aio.events().state, OrderState)


async def an_engine(engine: WorkflowEngine) -> None:
    assert_type(engine.inspect("w"), WorkflowRunSnapshot | None)
    assert_type(engine.cancel("w", "r", retain=True, retain_for=60), bool)
    assert_type(await engine.aio.inspect("w"), WorkflowRunSnapshot | None)
    assert_type(await engine.aio.abandon("w"), bool)
    snapshot = engine.inspect("w")
    if snapshot is not None:
        assert_type(snapshot.status, WorkflowStatus)
        assert_type(snapshot.interrupt, InterruptRequest | None)
        assert_type(snapshot.lease_expires_at, dt.datetime | None)


def refusals(orders: Orders) -> None:
    try:
        orders.run(ExecutionRequest.start(StartEvent()))
    except WorkflowRefusedError as refused:
        assert_type(refused.reason, RefusalReason)


def requests() -> None:
    assert_type(ApprovalRequest("delete?", []).message, str)
    assert_type(ExecutionRequest.signal("paid", {"amount": 1}), ExecutionRequest)
    assert_type(ExecutionRequest.from_json("{}"), ExecutionRequest)
