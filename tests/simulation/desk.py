"""A short workflow for many interleavings: draft (a memo), ask a person, send (a memo), with a deadline if wanted.

Few operations make few interleavings, so that all of them can be walked.
"""

import datetime as dt
from typing import Any

from tests.simulation.journey import Outside
from tests.simulation.universe import ID, LEASE, NOON, Process, Trip
from workflow import ApprovalRequest, Event, StartEvent, StopEvent, Workflow, WorkflowState, interrupt, memoize

__all__ = ["CLOSES", "desk", "errand"]

CLOSES = NOON + dt.timedelta(hours=1)


class Drafted(Event):
    pass


class DeskState(WorkflowState):
    receipts: tuple[str, ...] = ()
    approval: dict[str, Any] | None = None


def draft(event: StartEvent, state: DeskState, resources: Outside) -> Drafted:
    state.receipts = (*state.receipts, memoize("draft", lambda: resources.world.effect("draft")))
    return Drafted()


def ask(event: Drafted, state: DeskState, resources: Outside) -> StopEvent:
    world = resources.world
    state.approval = world.answer("approval", interrupt(ApprovalRequest("send it?", expires_at=CLOSES)))
    state.receipts = (*state.receipts, memoize("send", lambda: world.effect("send")))
    world.final(state.all())
    return StopEvent(result=state.approval)


def send(event: Drafted, state: DeskState, resources: Outside) -> StopEvent:
    receipt = memoize("send", lambda: resources.world.effect("send"))
    if resources.world.trips("send"):
        raise Trip("the post office is closed")
    state.receipts = (*state.receipts, receipt)
    resources.world.final(state.all())
    return StopEvent(result=receipt)


class Desk(Workflow[DeskState]):
    lease_timeout = LEASE
    history = True


def _bound(process: Process, nodes: tuple[Any, ...], options: dict[str, Any]) -> Desk:
    world = Outside(process.world)
    return Desk(ID, nodes=nodes, persistence=process.store, clock=process.clock, resources=world, **options)


def desk(process: Process, **options: Any) -> Desk:
    """Draft, ask, send."""
    return _bound(process, (draft, ask), options)


def errand(process: Process, **options: Any) -> Desk:
    """Draft and send without asking; the first send of each run fails after its memo."""
    return _bound(process, (draft, send), options)
