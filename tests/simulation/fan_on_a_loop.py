"""The workflow of branches on an event loop, some of its nodes async."""

import asyncio
from typing import Any

from tests.simulation import fan
from tests.simulation.scheduler import Crash
from tests.simulation.universe import ID, Process
from workflow import ApprovalRequest, ConcurrentBranchRunner, ExecutionRequest, StopEvent, amemoize, interrupt

__all__ = ["fan_on_a_loop"]


async def ask(event: fan.Question, state: fan.FanState, resources: fan.Outdoors) -> fan.Answered:
    draft = await amemoize("draft", lambda: _effect(resources, "draft"))
    answer = resources.world.answer("approval", interrupt(ApprovalRequest("send it?")))
    return fan.Answered(by=str(answer["price"]), draft=draft)


async def tell(event: fan.Answered, state: fan.FanState, resources: fan.Outdoors) -> StopEvent:
    receipt = await amemoize("tell", lambda: _effect(resources, "tell"))
    state.receipts = (*state.receipts, event.draft, receipt)
    return StopEvent([event.by, *state.receipts])


async def _effect(resources: fan.Outdoors, name: str) -> str:
    await asyncio.sleep(0)
    if resources.process.dead:
        raise Crash
    return resources.world.effect(name)


class FanOnALoop(fan.Fan):
    """Every call runs on a loop of its own."""

    def nodes(self) -> list[Any]:
        others = [node for node in super().nodes() if node not in (fan.ask, fan.tell)]
        return [*others, ask, tell]

    def run(self, request: ExecutionRequest | None = None) -> fan.FanState:
        return asyncio.run(self.aio.run(request))


def fan_on_a_loop(process: Process, **options: Any) -> FanOnALoop:
    """The workflow as one process defines it."""
    return FanOnALoop(
        ID,
        persistence=process.store,
        clock=process.clock,
        resources=fan.Outdoors(process),
        branch_runner=ConcurrentBranchRunner(),
        **options,
    )
