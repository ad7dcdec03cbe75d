"""The reference workflow: everything that a run can meet on one path.

A loop of three rounds; a node with three waits and a conditional one (a person, an event with a deadline inside a memo's
closure, a moment); a node that fails when a run first gets there; another sleep; memos inside memos; typed state and further
keys; middleware that writes to the state.
"""

import datetime as dt
from typing import Any

from tests.simulation.universe import ID, LEASE, NOON, Process, Trip
from tests.simulation.world import World
from workflow import (
    ApprovalRequest,
    Event,
    Middleware,
    Node,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowResources,
    WorkflowState,
    await_event,
    interrupt,
    interrupt_if,
    memoize,
    recall_memo,
    sleep_until,
)

__all__ = ["OFFER_ENDS", "ROUNDS", "WAKES", "Journey", "journey"]

ROUNDS = 3
OFFER_ENDS = NOON + dt.timedelta(hours=1)
COOLED = NOON + dt.timedelta(hours=1, minutes=30)
WAKES = NOON + dt.timedelta(hours=2)


class Round(Event):
    number: int


class Collected(Event):
    pass


class Agreed(Event):
    price: int | None


class Paid(Event):
    pass


class Rested(Event):
    pass


class JourneyState(WorkflowState):
    rounds: int = 0
    receipts: tuple[str, ...] = ()
    approval: dict[str, Any] | None = None
    price: int | None = None
    seen: int = 0


class Outside(WorkflowResources):
    """The world, as nodes reach it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world


class Counting(Middleware):
    """Counts in the state what it surrounds; recorded with each step, so that no step may count twice."""

    def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
        state.set("before", state.get("before", 0) + 1)

    def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
        state.set("after", state.get("after", 0) + 1)


def begin(event: StartEvent, state: JourneyState) -> Round:
    return Round(number=0)


class Collect(Node):
    step_name = "collect"

    def __call__(self, event: Round, state: JourneyState, resources: Outside) -> Round | Collected:
        state.receipts = (*state.receipts, self.memoize("fetch", lambda: resources.world.effect("fetch")))
        state.rounds += 1
        if event.number + 1 == ROUNDS:
            state.set("more", {"rounds": state.rounds})
            return Collected()
        return Round(number=event.number + 1)


def agree(event: Collected, state: JourneyState, resources: Outside) -> Agreed:
    world = resources.world
    draft = memoize("draft", lambda: world.effect("draft"))
    state.approval = world.answer("approval", interrupt(ApprovalRequest(f"send {draft.partition('#')[0]}?")))
    interrupt_if(state.approval is None, ApprovalRequest("are you sure?"))
    booked = memoize("booked", lambda: _booked(world))
    offer = memoize("offer", lambda: _offer(world))
    sleep_until(COOLED)
    state.receipts = (*state.receipts, draft, *booked, offer["receipt"])
    state.price = offer["price"]
    return Agreed(price=state.price)


def _booked(world: World) -> list[str]:
    """A memo around a memo: the inner one is recorded first."""
    inner = memoize("inner", lambda: world.effect("inner"))
    return [inner, world.effect("booked")]


def _offer(world: World) -> dict[str, Any]:
    """A memo around a wait: the answer is recorded with the memo, after which the wait is not reached any more."""
    offered = world.answer("offer", await_event("offer", expires_at=OFFER_ENDS))
    return {"price": offered and offered["price"], "receipt": world.effect("offer")}


def pay(event: Agreed, state: JourneyState, resources: Outside) -> Paid:
    receipt = memoize("pay", lambda: resources.world.effect("pay"))
    if resources.world.trips("pay"):
        raise Trip("the bank is closed")
    state.receipts = (*state.receipts, receipt, recall_memo("pay"))
    state.delete("more")
    return Paid()


def rest(event: Paid, state: JourneyState, resources: Outside) -> Rested:
    sleep_until(WAKES)
    state.set("rested", memoize("wake", lambda: resources.world.effect("wake")))
    return Rested()


def finish(event: Rested, state: JourneyState, resources: Outside) -> StopEvent:
    report = memoize("report", lambda: resources.world.effect("report"))
    resources.world.final({**state.all(), "report": report})
    return StopEvent(result=report)


class Journey(Workflow[JourneyState]):
    lease_timeout = LEASE
    history = True

    def nodes(self) -> list[Any]:
        return [begin, Collect(), agree, pay, rest, finish]


def journey(process: Process, **options: Any) -> Journey:
    """The workflow as one process defines it."""
    return Journey(
        ID,
        persistence=process.store,
        clock=process.clock,
        resources=Outside(process.world),
        middleware=(Counting(),),
        **options,
    )
