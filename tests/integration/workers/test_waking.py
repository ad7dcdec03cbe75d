"""Waiting for runs on a real server: woken at once however they end, on one connection, through restarts of the server."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from persistence.redis import connect
from workers import MeshClient, RunHandle, RunResult, Settings, register
from workers.composition import Runtime
from workers.embedded import installed_binaries
from workers.errors import TimedOutError
from workers.processes import ProcessSpec, Supervisor
from workers.segments import run_segment
from workers.waking import RedisWakeUps
from workflow import (
    ApprovalRequest,
    Event,
    ExecutionRequest,
    Node,
    StopEvent,
    Workflow,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
    interrupt,
)

pytestmark = pytest.mark.server

PATIENCE = 20.0
AT_ONCE = 1.0
"""Seconds within which a wake-up comes; without one a waiter looks after `RedisWakeUps.look_every`, which is longer here."""
REST = 60.0


class Asked(Event):
    how: str


class Ends(Node):
    step_name = "ends"

    def __call__(self, event: Asked, state: WorkflowState) -> StopEvent:
        if event.how == "fails":
            raise ValueError("it fails")
        if event.how == "asks":
            interrupt(ApprovalRequest("really?"))
        return StopEvent(event.how)


class Ending(Workflow[WorkflowState]):
    lease_timeout = 30

    def nodes(self) -> tuple[Node, ...]:
        return (Ends(),)

    def resources(self) -> WorkflowResources:
        return WorkflowResources()


class Unheard:
    """Hints that nobody follows: each test is the worker."""

    def send(self, name: str, workflow_id: str, run_id: str) -> bool:
        return True


def mesh(url: str) -> MeshClient:
    register("kept", lambda workflow_id: Ending(workflow_id, retain_for=600))
    register("gone", Ending)
    client = MeshClient(runtime=Runtime(Settings.load(redis_url=url)))
    client.runtime.__dict__["hints"] = Unheard()
    return client


@pytest.fixture
def client(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshClient]:
    """A client whose waiters look again only after a minute, so that nothing but wake-ups can be at work."""
    monkeypatch.setattr(RedisWakeUps, "look_every", REST)
    client = mesh(redis_url)
    yield client
    client.close()


@pytest.fixture
def other(redis_url: str) -> Iterator[MeshClient]:
    """Another process, as far as the server can tell."""
    client = mesh(redis_url)
    yield client
    client.close()


def work(other: MeshClient, handle: RunHandle) -> None:
    run_segment(other.runtime, handle.name, handle.workflow_id, handle.run_id)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def listening(client: MeshClient) -> int:
    """Connections on which somebody waits for the stream."""
    with redis.Redis.from_url(client.runtime.settings.store_url) as asking:
        return sum(one["cmd"] == "xread" for one in asking.client_list())


@pytest.mark.parametrize(
    ("name", "how", "status"),
    [
        ("kept", "completes", WorkflowStatus.COMPLETED),
        ("kept", "fails", WorkflowStatus.FAILED),
        ("kept", "asks", WorkflowStatus.SUSPENDED),
        ("gone", "completes", WorkflowStatus.COMPLETED),
    ],
)
def test_a_waiter_is_woken_when_a_worker_settles_the_run(
    client: MeshClient, other: MeshClient, name: str, how: str, status: WorkflowStatus
) -> None:
    handle = client.start(name, "run:1", Asked(how=how))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.wait, PATIENCE)
        until(lambda: listening(client))
        work(other, handle)
        began = time.monotonic()

        assert waiting.result(AT_ONCE).status is status
        assert time.monotonic() - began < AT_ONCE


@pytest.mark.parametrize(
    ("ends", "status"), [("cancel", WorkflowStatus.CANCELLED), ("abandon", None)], ids=["cancelled", "abandoned"]
)
def test_a_waiter_is_woken_when_somebody_ends_the_run(
    client: MeshClient, other: MeshClient, ends: str, status: WorkflowStatus | None
) -> None:
    handle = client.start("gone", "run:1", Asked(how="completes"))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.wait, PATIENCE)
        until(lambda: listening(client))
        assert getattr(other, ends)("run:1")

        assert waiting.result(AT_ONCE) == RunResult(status)


def test_a_waiter_is_woken_when_a_run_is_parked(client: MeshClient, other: MeshClient) -> None:
    register("kept", lambda workflow_id: Ending(workflow_id, retain_for=600, max_takeovers=1, lease_timeout=1))
    handle = client.start("kept", "run:1", Asked(how="completes"))
    lost = other.runtime.definition("kept", "run:1")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.wait, PATIENCE)
        until(lambda: listening(client))
        take_and_die(lost, other, handle)

        assert waiting.result(PATIENCE).status is WorkflowStatus.FAILED


def take_and_die(definition: Any, other: MeshClient, handle: RunHandle) -> None:
    """Lose worker after worker with the run, until it is parked."""

    def parked() -> bool:
        snapshot = handle.snapshot()
        return snapshot is not None and snapshot.status is WorkflowStatus.FAILED

    store = other.runtime.store

    class Deaf:
        """The store as a worker sees it that is gone once it has claimed the run."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def write_if_unchanged(self, *args: Any, **options: Any) -> bool:
            if writes:
                raise SystemExit
            writes.append(args)
            return store.write_if_unchanged(*args, **options)

    while not parked():
        writes: list[Any] = []
        other.runtime.__dict__["store"] = Deaf()
        with suppress(SystemExit):
            work(other, handle)
        other.runtime.__dict__["store"] = store
        time.sleep(0.1)


def test_a_wake_up_that_is_lost_costs_no_more_than_a_look(redis_url: str, other: MeshClient) -> None:
    client = mesh(redis_url)
    handle = client.start("kept", "run:1", Asked(how="completes"))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.wait, PATIENCE)
        other.runtime.definition("kept", "run:1").run(ExecutionRequest.resume())

        assert waiting.result(RedisWakeUps.look_every + AT_ONCE).result == "completes"
    client.close()


def test_many_waiters_in_threads_and_on_a_loop_share_one_connection(client: MeshClient, other: MeshClient) -> None:
    handles = [client.start("kept", f"run:{number}", Asked(how="completes")) for number in range(60)]
    others = [client.start("kept", f"on-loop:{number}", Asked(how="completes")) for number in range(200)]

    async def wait_for_all() -> list[RunResult]:
        return await asyncio.gather(*(client.aio.wait(handle, PATIENCE) for handle in others))

    with ThreadPoolExecutor(len(handles) + 1) as pool:
        waiting = [pool.submit(handle.wait, PATIENCE) for handle in handles]
        on_loop = pool.submit(asyncio.run, wait_for_all())
        until(lambda: listening(client) == 1)
        for handle in [*handles, *others]:
            work(other, handle)
        assert {one.result(PATIENCE).result for one in waiting} == {"completes"}
        assert {one.result for one in on_loop.result(PATIENCE)} == {"completes"}
        assert listening(client) == 1


def test_a_waiter_on_a_loop_that_is_cancelled_leaves_nothing_behind(client: MeshClient) -> None:
    handle = client.start("kept", "run:1", Asked(how="completes"))

    async def wait_a_moment() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.aio.wait(handle, REST), 0.2)
        with pytest.raises(TimedOutError, match="goes on"):
            await client.aio.wait(handle, 0.2)

    began = time.monotonic()
    asyncio.run(wait_a_moment())

    assert time.monotonic() - began < PATIENCE
    assert not client.runtime.wake_ups._ears


def test_the_wait_ends_with_its_time(client: MeshClient) -> None:
    handle = client.start("kept", "run:1", Asked(how="completes"))
    began = time.monotonic()

    with pytest.raises(TimedOutError, match=r"not finished after 0\.5 s; it goes on"):
        handle.wait(0.5)

    assert 0.5 <= time.monotonic() - began < PATIENCE


def test_the_listener_ends_when_nobody_waits_and_the_next_waiter_starts_another(redis_url: str) -> None:
    wake_ups = RedisWakeUps(connect(redis_url), linger=0.0)
    for number in (1, 2):
        woken = threading.Event()
        with wake_ups.listening("run", str(number), woken.set):
            wake_ups.tell("run", str(number))
            assert woken.wait(PATIENCE)
        until(lambda: wake_ups._thread is None)


def test_the_stream_is_bounded_and_expires(redis_url: str) -> None:
    wake_ups = RedisWakeUps(connect(redis_url))
    for number in range(1500):
        wake_ups.tell("run", str(number))

    with redis.Redis.from_url(redis_url) as asking:
        assert 1000 <= asking.xlen("jarvis:settled") < 1300
        assert 0 < asking.ttl("jarvis:settled") <= 60


def test_a_wake_up_that_cannot_be_sent_holds_up_nobody() -> None:
    began = time.monotonic()
    RedisWakeUps(connect("redis://127.0.0.1:1/0")).tell("run", "1")

    assert time.monotonic() - began < AT_ONCE


def test_waiters_hear_again_after_the_server_was_away(tmp_path: Path) -> None:
    with Supervisor(tmp_path / "home") as supervisor:
        socket = tmp_path / "s"

        def started(number: int) -> int:
            argv = [str(installed_binaries()[0].path), "--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path)]
            pid = supervisor.start(ProcessSpec(f"server-{number}", [*argv, "--save", ""], log=tmp_path / "log"))
            until(lambda: answers(socket, pid))
            return pid

        first = started(1)
        wake_ups, woken = RedisWakeUps(connect(f"unix://{socket}?db=0")), threading.Event()
        with wake_ups.listening("run", "1", woken.set):
            wake_ups.tell("run", "1")
            assert woken.wait(PATIENCE)
            woken.clear()
            os.kill(first, signal.SIGKILL)
            until(lambda: not answers(socket, first))
            started(2)
            RedisWakeUps(connect(f"unix://{socket}?db=0")).tell("run", "1")
            assert woken.wait(PATIENCE)
        wake_ups.close()


def answers(socket: Path, pid: int) -> bool:
    with suppress(redis.RedisError), redis.Redis(unix_socket_path=str(socket)) as client:
        return client.info()["process_id"] == pid
    return False
