"""What tests of branches stand on: both ways to run, gates that order what runs at once, and patience instead of sleeps."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.workflow.branches.asking import Ask, Then, fork, join, then
from workflow import ConcurrentBranchRunner, ExecutionRequest, Workflow, WorkflowState, await_event, branch_id

PATIENCE = 10.0
"""Seconds after which something that has not come fails its test."""
LIMIT = 30
"""Seconds after which a test here counts as hung."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a deadlock fail its test, and soon."""
    for item in items:
        if item.path.parent.name == "branches":
            item.add_marker(pytest.mark.timeout(LIMIT))


class Gates:
    """Named gates, closed until somebody opens them. Whoever waits at one in vain fails."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gates: dict[Any, threading.Event] = {}

    def open(self, name: Any) -> None:
        """Let everybody pass from now on."""
        self._gate(name).set()

    def is_open(self, name: Any) -> bool:
        """Whether somebody has opened it."""
        return self._gate(name).is_set()

    def wait(self, name: Any) -> None:
        """Wait in a thread."""
        assert self._gate(name).wait(PATIENCE), f"nobody opened {name!r}"

    async def passed(self, name: Any) -> None:
        """Wait on an event loop."""
        await asyncio.to_thread(self.wait, name)

    def _gate(self, name: Any) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(name, threading.Event())


@pytest.fixture
def gates() -> Gates:
    """Return named gates."""
    return Gates()


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], None]:
    """Return what waits for a condition."""

    def wait(condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "the condition never came true"
            time.sleep(0.002)

    return wait


def _plainly(definition: Workflow, request: ExecutionRequest | None = None) -> WorkflowState:
    return definition.run(request)


def _on_a_loop(definition: Workflow, request: ExecutionRequest | None = None) -> WorkflowState:
    async def patient() -> WorkflowState:
        return await asyncio.wait_for(definition.aio.run(request), PATIENCE)

    return asyncio.run(patient())


@pytest.fixture(params=[_plainly, _on_a_loop], ids=["run", "aio"])
def run(request: pytest.FixtureRequest) -> Callable[..., WorkflowState]:
    """Return each way to run a definition."""
    return request.param


@pytest.fixture
def concurrent(define: Callable[..., Workflow]) -> Callable[..., Workflow]:
    """Return `define` with branches that run side by side."""

    def make(*nodes: Callable[..., Any], **options: Any) -> Workflow:
        return define(*nodes, **{"branch_runner": ConcurrentBranchRunner(), **options})

    return make


@pytest.fixture
def awaited() -> Callable[[Workflow], str | None]:
    """Return what tells the name of the event that a run waits for now."""

    def name(definition: Workflow) -> str | None:
        seen = definition.inspect()
        return None if seen is None or seen.interrupt is None else seen.interrupt.awaited_event

    return name


@pytest.fixture
def queue(gates, until, define) -> Callable[[str], None]:
    """Return what lets the nodes of three branches reach their first waits in the order of their names.

    All must run by then, for none begins once one waits.
    """

    def waiting() -> int:
        seen = define().inspect()
        return seen.deferred_interrupts + (seen.interrupt is not None)

    def in_turn(name: str) -> None:
        if gates.is_open("all wait"):
            return
        gates.open(name)
        for other in "abc":
            gates.wait(other)
        until(lambda: waiting() == ord(name) - ord("a"))
        if name == "c":
            gates.open("all wait")

    return in_turn


@pytest.fixture
def three(concurrent, queue) -> Callable[..., Workflow]:
    """Return what makes a workflow with three branches, each of which waits for the event of its name and goes on."""

    def ask(event: Ask, state: WorkflowState) -> Then:
        name = branch_id() or ""
        queue(name)
        return Then(answer=await_event(name))

    return lambda **options: concurrent(fork, ask, then, join, **options)
