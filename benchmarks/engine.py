"""The cost of durability: one step against the raw script call, early against late steps, resuming short and long runs."""

import itertools
import statistics
import time
from collections.abc import Iterator

import redis

from benchmarks.measuring import ROUNDS, report, seconds
from persistence import InMemoryPersistence, Persistence, RedisPersistence
from workflow import Event, ExecutionRequest, Node, StopEvent, Workflow, WorkflowState

STEPS = 500


class Tick(Event):
    """The n-th step."""

    n: int
    last: int


class BrokenOffError(Exception):
    """Ends a run in the middle, for the recovery to be measured."""


class Count(Node):
    """A step that does as little as a step can: one integer in the state."""

    step_name = "count"
    breaks_at: int | None = None

    def __init__(self) -> None:
        self.moments: dict[int, float] = {}

    def __call__(self, event: Tick, state: WorkflowState) -> Tick | StopEvent:
        self.moments[event.n] = time.perf_counter()
        if event.n == self.breaks_at:
            raise BrokenOffError
        state["n"] = event.n
        return StopEvent(event.n) if event.n == event.last else Tick(n=event.n + 1, last=event.last)


class Counter:
    """Passes everything on to a store, and counts it."""

    def __init__(self, inner: Persistence) -> None:
        self._inner = inner
        self.calls = 0

    def __getattr__(self, name: str) -> object:
        self.calls += 1
        return getattr(self._inner, name)


_ids: Iterator[int] = itertools.count()


def run(store: Persistence, steps: int, *, breaks_at: int | None = None) -> Workflow:
    """A run of so many steps on a store; broken off before one of them if asked."""
    node = Count()
    node.breaks_at = breaks_at
    workflow = Workflow(f"bench-{next(_ids)}", nodes=[node], start_event=Tick(n=1, last=steps), persistence=store)
    try:
        workflow.run()
    except BrokenOffError:
        node.breaks_at = None
    return workflow


def measure(client: redis.Redis) -> None:
    """Print the figures."""
    store = RedisPersistence(client)
    call = _script_call_of_a_step(store)
    ratios, raw, ours = [], 0.0, 0.0
    for _ in range(ROUNDS):
        raw = seconds(lambda: [client.evalsha(*call) for _ in range(STEPS)]) / STEPS
        ours = seconds(lambda: run(store, STEPS)) / STEPS
        ratios.append(ours / raw)
    counting = Counter(store)
    run(counting, 10)
    report(
        "Engine on Redis",
        [
            ("raw script call of a step", f"{raw * 1e6:.0f} us"),
            ("durable step", f"{ours * 1e6:.0f} us, {statistics.median(ratios):.2f} times the raw call (median of {ROUNDS})"),
            ("store operations of a run of 10 steps", str(counting.calls)),
            ("unfinished run of 10 steps, one integer of state", f"{_memory(client, run(store, 11, breaks_at=11))} bytes"),
        ],
    )
    for name, backend in (("memory", InMemoryPersistence()), ("Redis", store)):
        report(f"Long runs on {name}", _long_runs(backend))


def _script_call_of_a_step(store: RedisPersistence) -> list[object]:
    """The arguments of the script call of a step, with a fence that always holds, so that it writes each time."""
    client = store._link.client
    calls: list[list[object]] = []
    original = client.evalsha
    client.evalsha = lambda *call: calls.append(list(call)) or original(*call)  # type: ignore[method-assign]
    workflow = run(store, 10, breaks_at=10)
    client.evalsha = original  # type: ignore[method-assign]
    step = calls[5]
    (partition,) = client.keys(f"*:p:{workflow.workflow_id}")
    fence = step[2 + int(str(step[1])) + 2]
    place = step.index("__control", 2 + int(str(step[1])) + 3)
    step[place + 1] = fence
    client.hset(partition.decode(), "__control", fence)  # type: ignore[arg-type]
    return step


def _memory(client: redis.Redis, workflow: Workflow) -> int:
    (key,) = client.keys(f"*:p:{workflow.workflow_id}")
    return int(client.memory_usage(key, samples=0))


def _long_runs(store: Persistence) -> list[tuple[str, str]]:
    node = Count()
    Workflow(f"bench-{next(_ids)}", nodes=[node], start_event=Tick(n=1, last=10_001), persistence=store).run()
    early, late = ((node.moments[to] - node.moments[to - 990]) / 990 for to in (1000, 10_000))
    resume = {steps: _resume(store, steps) for steps in (10, 255, 10_000)}
    return [
        ("a step among the first thousand", f"{early * 1e6:.0f} us"),
        ("a step among the tenth thousand", f"{late * 1e6:.0f} us, {late / early:.2f} times"),
        *((f"resume after {steps} steps", f"{took * 1e3:.1f} ms") for steps, took in resume.items()),
    ]


def _resume(store: Persistence, steps: int) -> float:
    workflow = run(store, steps + 1, breaks_at=steps + 1)
    return seconds(lambda: workflow.run(ExecutionRequest.resume()))
