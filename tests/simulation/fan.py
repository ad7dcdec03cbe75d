"""The workflow of branches: everything that a fork can meet.

Four branches, then a second round of two. One asks a person and goes on; one waits for an event with a deadline; one fails when
a run first gets there; one forks again, into two branches that loop, one of which asks too; in the second round one sleeps.
How long each node takes is up to the schedule: it may lose the baton wherever it lingers.
"""

import datetime as dt
from typing import Any

from tests.simulation.scheduler import Crash, pause
from tests.simulation.universe import ID, LEASE, NOON, Process, Trip
from workflow import (
    ApprovalRequest,
    BranchRunner,
    ConcurrentBranchRunner,
    Event,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowResources,
    WorkflowState,
    await_event,
    branch_id,
    interrupt,
    interrupt_if,
    memoize,
    sleep_until,
)

__all__ = ["OFFER_ENDS", "WIDTH", "Fan", "Outdoors", "fan", "fan_in_turn"]

WIDTH = 5
"""Branches that may be under way at once, the inner ones instead of their outer one."""
OFFER_ENDS = NOON + dt.timedelta(hours=1)
WAKES = NOON + dt.timedelta(hours=2)


class Spread(ParallelEvent):
    round: int = 0


class Deep(ParallelEvent):
    pass


class Question(Event):
    pass


class Answered(Event):
    by: str
    draft: str


class Offer(Event):
    pass


class Payment(Event):
    pass


class Digging(Event):
    pass


class Dig(Event):
    depth: int = 0


class Rest(Event):
    pass


class FanState(WorkflowState):
    receipts: tuple[str, ...] = ()
    found: tuple[Any, ...] = ()


class Outdoors(WorkflowResources):
    """The world, as the nodes of one process reach it."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.world = process.world

    def effect(self, name: str) -> str:
        """Do something outside, once per step. A process that has died does nothing in any of its threads."""
        pause()
        receipt = memoize(name, self._alive(name))
        pause()
        return receipt

    def _alive(self, name: str) -> Any:
        def act() -> str:
            if self.process.dead:
                raise Crash
            return self.world.effect(name)

        return act


def spread(event: StartEvent, state: FanState, resources: Outdoors) -> Spread:
    state.receipts = (resources.effect("spread"),)
    return Spread({"ask": Question(), "offer": Offer(), "pay": Payment(), "dig": Digging()})


def ask(event: Question, state: FanState, resources: Outdoors) -> Answered:
    draft = resources.effect("draft")
    answer = resources.world.answer("approval", interrupt(ApprovalRequest("send it?")))
    return Answered(by=str(answer["price"]), draft=draft)


def tell(event: Answered, state: FanState, resources: Outdoors) -> StopEvent:
    state.receipts = (*state.receipts, event.draft, resources.effect("tell"))
    return StopEvent([event.by, *state.receipts])


def offer(event: Offer, state: FanState, resources: Outdoors) -> StopEvent:
    pause()
    offered = resources.world.answer("offer", await_event("offer", expires_at=OFFER_ENDS))
    return StopEvent([offered and offered["price"], resources.effect("offer")])


def pay(event: Payment, state: FanState, resources: Outdoors) -> StopEvent:
    receipt = resources.effect("pay")
    if resources.world.trips("pay"):
        raise Trip("the bank is closed")
    return StopEvent(receipt)


def digging(event: Digging, state: FanState, resources: Outdoors) -> Deep:
    state.receipts = (*state.receipts, resources.effect("digging"))
    return Deep({"ask": Dig(), "pay": Dig()})


def dig(event: Dig, state: FanState, resources: Outdoors) -> Dig | StopEvent:
    """Two levels; the branch called `ask` asks at the second."""
    asks = branch_id() == "ask" and event.depth == 1
    pause()
    answer = interrupt_if(asks, ApprovalRequest("deeper?"))
    if asks:
        resources.world.answer("deeper", answer)
    state.receipts = (*state.receipts, resources.effect("dig"))
    return Dig(depth=1) if event.depth == 0 else StopEvent(list(state.receipts))


def dug(event: Deep, state: FanState, resources: Outdoors) -> StopEvent:
    return StopEvent([event.results, resources.effect("dug")])


def rest(event: Rest, state: FanState, resources: Outdoors) -> StopEvent:
    pause()
    sleep_until(WAKES)
    return StopEvent(resources.effect("rest"))


def gather(event: Spread, state: FanState, resources: Outdoors) -> Spread | StopEvent:
    state.found = (*state.found, event.results)
    receipt = resources.effect("gather")
    state.receipts = (*state.receipts, receipt)
    if event.round == 0:
        return Spread({"ask": Question(), "rest": Rest()}, round=1)
    resources.world.final(state.all())
    return StopEvent(receipt)


class Fan(Workflow[FanState]):
    lease_timeout = LEASE
    history = True

    def nodes(self) -> list[Any]:
        return [spread, ask, tell, offer, pay, digging, dig, dug, rest, gather]


def fan(process: Process, *, runner: BranchRunner | None = None, **options: Any) -> Fan:
    """The workflow as one process defines it, its branches side by side."""
    return Fan(
        ID,
        persistence=process.store,
        clock=process.clock,
        resources=Outdoors(process),
        branch_runner=runner or ConcurrentBranchRunner(),
        **options,
    )


def fan_in_turn(process: Process, **options: Any) -> Fan:
    """The same, one branch after the other."""
    return fan(process, runner=SequentialBranchRunner(), **options)
