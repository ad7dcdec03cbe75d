"""Each pool executes runs; a prefork parent gives back what a dead child had in hand; a worker leaves within its grace."""

import os
import signal
import time
from typing import Any

import psutil
import pytest

from workflow import WorkflowStatus

pytestmark = pytest.mark.processes

POOLS = ["prefork", "threads", "solo"]
LEASE = 30


def test_a_killed_child_costs_no_lease(make_work: Any, make_server: Any, until: Any) -> None:
    work = make_work(make_server().url)
    worker = work.worker("prefork")
    work.hold()
    handle = work.start("orphaned")
    until(work.began, worker.output)
    (victim,) = work.began()

    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(work.began()) == 2, worker.output)
    taken_over = time.monotonic() - killed
    work.release()

    assert taken_over < LEASE / 10
    assert victim not in work.began()[1:]
    assert handle.wait(10).result == "done"
    assert handle.snapshot().execution_attempt == 2
    print(f"taken over after {taken_over * 1000:.0f} ms")
    assert worker.popen.poll() is None


def test_forked_children_share_no_connection_with_their_parent(make_work: Any, make_server: Any, until: Any) -> None:
    broker = make_server()
    store = make_server()
    work = make_work(broker.url, JARVIS_REDIS_URL=store.url)
    worker = work.worker("prefork", JARVIS_HEARTBEAT_EVERY="0.1")
    victims = worker.children()
    os.kill(victims[0], signal.SIGKILL)  # the child in its place is forked while the parent's connections are in use
    until(lambda: len(set(worker.children()) - set(victims)) == 1, worker.output)
    for number in range(4):
        work.done(f"run-{number}")

    ports = {pid: connections(pid, {broker.port, store.port}) for pid in (worker.pid, *worker.children())}

    assert ports[worker.pid]
    assert sum(len(each) for each in ports.values()) == len(set().union(*ports.values()))


def connections(pid: int, servers: set[int]) -> set[int]:
    """The local ports of a process's connections to these servers."""
    return {link.laddr.port for link in psutil.Process(pid).net_connections("tcp") if link.raddr and link.raddr.port in servers}


@pytest.mark.parametrize("pool", POOLS)
def test_each_pool_executes_runs_and_when_told_to_go_lets_the_node_finish(
    make_work: Any, make_server: Any, until: Any, pool: str
) -> None:
    work = make_work(make_server().url)
    worker = work.worker(pool)
    work.done("a-run")
    assert (work.began()[0] in worker.children()) == (pool == "prefork")
    work.hold()
    handle = work.start("finishing")
    until(lambda: len(work.began()) == 2, worker.output)

    worker.signal(signal.SIGTERM)
    until(lambda: "Warm shutdown" in worker.output(), worker.output)
    work.release()

    assert worker.popen.wait(10) == 0, worker.output()
    assert handle.snapshot().status is WorkflowStatus.COMPLETED


@pytest.mark.parametrize(
    ("pool", "number"),
    [("prefork", signal.SIGTERM), ("threads", signal.SIGTERM), ("solo", signal.SIGTERM), ("threads", signal.SIGQUIT)],
)
def test_a_node_that_outlasts_the_grace_is_given_back(
    make_work: Any, make_server: Any, until: Any, pool: str, number: int
) -> None:
    work = make_work(make_server().url, JARVIS_SHUTDOWN_GRACE="0.5")
    leaving = work.worker(pool)
    work.hold()
    handle = work.start("given-back")
    until(work.began, leaving.output)

    told = time.monotonic()
    leaving.signal(number)
    leaving.popen.wait(10)
    assert time.monotonic() - told < 5, leaving.output()
    snapshot = handle.snapshot()

    assert snapshot.lease_expires_at.timestamp() <= time.time(), leaving.output()
    assert snapshot.status is WorkflowStatus.RUNNING
