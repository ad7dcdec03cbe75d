"""Async nodes: memos and waits off the calling thread, on the loop of the process or on the caller's own."""

import asyncio
from functools import partial
from typing import Any

from tests.simulation.desk import CLOSES, Desk, DeskState, Drafted
from tests.simulation.driver import answer
from tests.simulation.journey import Outside
from tests.simulation.scenario import Actor, Scenario, act, time_passes
from tests.simulation.scenarios.answering import click, one_answer, waiting_run
from tests.simulation.universe import ID, Process
from workflow import ApprovalRequest, ExecutionRequest, StartEvent, StopEvent, WorkflowRunSnapshot, amemoize, interrupt

__all__ = ["SCENARIOS"]


async def draft(event: StartEvent, state: DeskState, resources: Outside) -> Drafted:
    state.receipts = (*state.receipts, await amemoize("draft", lambda: _effect(resources, "draft")))
    return Drafted()


async def ask(event: Drafted, state: DeskState, resources: Outside) -> StopEvent:
    state.approval = resources.world.answer("approval", interrupt(ApprovalRequest("send it?", expires_at=CLOSES)))
    state.receipts = (*state.receipts, await amemoize("send", lambda: _effect(resources, "send")))
    resources.world.final(state.all())
    return StopEvent(result=state.approval)


async def _effect(resources: Outside, name: str) -> str:
    await asyncio.sleep(0)
    return resources.world.effect(name)


def async_desk(process: Process, **options: Any) -> Desk:
    """Draft, ask, send, in coroutines."""
    world = Outside(process.world)
    return Desk(ID, nodes=(draft, ask), persistence=process.store, clock=process.clock, resources=world, **options)


def run_on_a_loop(process: Process) -> None:
    """Start the run, or go on with it, from an event loop."""
    process.call("start", lambda: asyncio.run(process.workflow.aio.run()))


def click_on_a_loop(process: Process) -> None:
    """Look at the question, then answer it, from an event loop."""
    seen: WorkflowRunSnapshot | None = process.call("inspect", lambda: asyncio.run(process.workflow.aio.inspect())).value
    if seen is not None and seen.interrupt is not None:
        answer(process, seen, {"by": process.name, "price": 7})


run = act("start")
resume = act("resume", ExecutionRequest.resume())
kept = partial(async_desk, retain_completion=True)

SCENARIOS = [
    Scenario("two async runs", partial(async_desk), (Actor("a", run), Actor("b", run_on_a_loop)), switches=None),
    Scenario("a slow async owner and a takeover", kept, (Actor("a", run_on_a_loop), Actor("b", resume), time_passes())),
    Scenario(
        "two people answer an async run",
        kept,
        (Actor("a", click), Actor("b", click_on_a_loop)),
        waiting_run,
        one_answer,
        switches=None,
    ),
]
