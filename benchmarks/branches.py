"""Branches: how long eight slow ones take side by side, and what the concurrent runner costs a step."""

# ruff: noqa: ARG001 - nodes take what they are given

import asyncio
import itertools
import statistics
import time
from collections.abc import Iterator

import redis

from benchmarks.measuring import ROUNDS, report, seconds
from persistence import InMemoryPersistence, Persistence, RedisPersistence
from workflow import (
    BranchRunner,
    ConcurrentBranchRunner,
    Event,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
)

BRANCHES = 8
SLOW = 0.2
"""Seconds that the node of a slow branch takes."""
STEPS = 50
"""Steps of each branch whose overhead is measured."""


class Fork(ParallelEvent):
    pass


class Slow(Event):
    pass


class SlowAsync(Event):
    pass


class Tick(Event):
    n: int = 1


def slow(event: Slow, state: WorkflowState) -> StopEvent:
    time.sleep(SLOW)
    return StopEvent()


async def slow_async(event: SlowAsync, state: WorkflowState) -> StopEvent:
    await asyncio.sleep(SLOW)
    return StopEvent()


def tick(event: Tick, state: WorkflowState) -> Tick | StopEvent:
    state["n"] = event.n
    return StopEvent() if event.n == STEPS else Tick(n=event.n + 1)


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent()


_ids: Iterator[int] = itertools.count()


def branches(store: Persistence, begins: Event, runner: BranchRunner) -> Workflow:
    """A workflow with eight branches that begin with this event."""

    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({str(number): begins for number in range(BRANCHES)})

    nodes = [fork, slow, slow_async, tick, join]
    return Workflow(f"branches-{next(_ids)}", nodes=nodes, persistence=store, branch_runner=runner)


def measure(client: redis.Redis) -> None:
    """Print the figures."""
    redis_store = RedisPersistence(client)
    report(f"{BRANCHES} branches of {SLOW * 1e3:.0f} ms each, side by side on Redis", list(_wall_times(redis_store)))
    for name, store in (("memory", InMemoryPersistence()), ("Redis", redis_store)):
        report(f"A step of {BRANCHES} branches of {STEPS} steps on {name}", _overhead(store))


def _wall_times(store: Persistence) -> Iterator[tuple[str, str]]:
    for kind, begins in (("plain", Slow()), ("async", SlowAsync())):
        plainly = seconds(lambda begins=begins: branches(store, begins, ConcurrentBranchRunner()).run())
        on_a_loop = seconds(lambda begins=begins: asyncio.run(branches(store, begins, ConcurrentBranchRunner()).aio.run()))
        yield f"{kind} nodes", f"{plainly * 1e3:.0f} ms by run(), {on_a_loop * 1e3:.0f} ms by aio.run()"


def _overhead(store: Persistence) -> list[tuple[str, str]]:
    in_turn = [_step(store, SequentialBranchRunner()) for _ in range(ROUNDS)]
    at_once = [_step(store, ConcurrentBranchRunner()) for _ in range(ROUNDS)]
    ratio = statistics.median(at_once) / statistics.median(in_turn)
    return [
        ("sequential runner", f"{statistics.median(in_turn) * 1e6:.0f} us"),
        ("concurrent runner", f"{statistics.median(at_once) * 1e6:.0f} us, {ratio:.2f} times"),
    ]


def _step(store: Persistence, runner: BranchRunner) -> float:
    return seconds(lambda: branches(store, Tick(), runner).run()) / (BRANCHES * STEPS)
