"""A process that asks for runs while a server is away: it is told which one, in one line, within a bounded time.

What a broker does that is away stands in `tests/acceptance/workers/test_brokers.py`.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from bus import BusError
from persistence import PersistenceError
from workers import MeshClient, RunHandle, Settings, register
from workers.embedded import start_server
from workers.processes import Supervisor
from workflow import Event, Node, StopEvent, Workflow, WorkflowState

pytestmark = pytest.mark.server

LONGEST = 25.0
"""Seconds that a call may take: a server that refuses is asked for 12 s, one that says nothing for 20."""


class Asked(Event):
    """Begin."""


class Nothing(Node):
    def __call__(self, event: Asked, state: WorkflowState) -> StopEvent:
        return StopEvent()


def complaint(call: Callable[[], object]) -> str:
    """What is said of the missing server. Fails when that takes too long."""
    began = time.monotonic()
    with pytest.raises((PersistenceError, BusError)) as refused:
        call()
    assert time.monotonic() - began < LONGEST
    return str(refused.value)


@pytest.fixture(autouse=True)
def asked() -> None:
    """Register the workflow."""
    register("asked", lambda workflow_id: Workflow(workflow_id, nodes=[Nothing()], start_event=Asked(), lease_timeout=30))


def test_a_store_that_is_not_there_is_named() -> None:
    client = MeshClient(Settings.load(redis_url="redis://:hunter2@127.0.0.1:1/0"))

    said = complaint(lambda: client.start("asked", "a:1"))

    assert "127.0.0.1:1" in said
    assert "\n" not in said
    assert "hunter2" not in said


def test_a_wait_is_not_kept_by_a_missing_store_for_its_whole_time() -> None:
    handle = RunHandle(MeshClient(Settings.load(redis_url="redis://127.0.0.1:1/0")), "asked", "a:1", "run", created=False)

    assert "127.0.0.1:1" in complaint(lambda: handle.wait(3600))


@pytest.mark.timeout(180)
def test_a_store_that_says_nothing_is_named(tmp_path: Path) -> None:
    with Supervisor(tmp_path / "home") as supervisor:
        url = start_server(supervisor).store_url
        client = MeshClient(Settings.load(redis_url=url))
        with redis.Redis.from_url(url) as asking:
            pid = asking.info()["process_id"]
        os.kill(pid, signal.SIGSTOP)
        try:
            said = complaint(lambda: client.start("asked", "a:1"))
        finally:
            os.kill(pid, signal.SIGCONT)
        client.close()

    assert "no answer from the Redis server at" in said
    assert "\n" not in said
