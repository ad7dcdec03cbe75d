"""Cases from the field: whoever is killed, lingers or is stopped for long, no run runs for ever and none that ended changes."""

import os
import signal
import time
from typing import Any

import psutil
import pytest

from workflow import RefusalReason, WorkflowRefusedError, WorkflowStatus

pytestmark = pytest.mark.processes

MODULES = "workers.definitions,field_stops"
LEASE = 2
"""Seconds: that of `field_stops`, unless a worker is told another one."""


@pytest.fixture
def field(make_work: Any, make_server: Any) -> Any:
    """Return a store with the workflows of `field_stops`, and a broker."""
    return make_work(make_server().url, JARVIS_MODULES=MODULES, JARVIS_SWEEP_EVERY="0.1")


def sweeper(work: Any, **environment: str) -> Any:
    return work.spawn("workers", "sweeper", **environment)


def began(work: Any, workflow_id: str) -> list[int]:
    """The processes in which the node of a run has begun, in order."""
    lines = [line.decode().split() for line in work.store.lrange("field:began", 0, -1)]
    return [int(pid) for name, pid in lines if name == workflow_id]


def start(work: Any, workflow_id: str, *, hold: bool = False) -> Any:
    if hold:
        work.store.set(f"field:hold:{workflow_id}", 1)
    return work.client.start("field-held", workflow_id)


def release(work: Any, workflow_id: str) -> None:
    work.store.delete(f"field:hold:{workflow_id}")


def kept(work: Any, workflow_id: str) -> tuple[Any, Any]:
    """All that the store holds of a run, byte by byte, and its place in the index."""
    store = work.client.runtime.store
    return store.load(workflow_id), store.entry(workflow_id)


def assert_final(work: Any, handle: Any) -> None:
    """Whatever comes late, or twice, changes nothing of a run that has ended."""
    client, name = work.client, handle.workflow_id
    before = kept(work, name)
    for _ in range(3):
        client.runtime.hints.send(handle.name, name, handle.run_id)
    assert client.retry(name) is False
    assert not client.start("field-held", name).created
    for end in (client.cancel, client.abandon):
        with pytest.raises(WorkflowRefusedError) as refused:
            end(name)
        assert refused.value.reason is RefusalReason.COMPLETED
    for attempt in range(handle.snapshot().execution_attempt + 1):
        assert client.runtime.engine.expire(name, handle.run_id, attempt) is False
    # Messages are taken in their order: behind them comes a whole run.
    assert start(work, f"behind-{name}").wait(30).status is WorkflowStatus.COMPLETED
    assert kept(work, name) == before
    told = [line.kind.value for line in client.history(name)]
    assert (told.count("completed"), told[-1]) == (1, "completed")


def test_f7_when_a_whole_worker_is_killed_at_once_its_run_is_freed_as_its_lease_ends(field: Any, until: Any) -> None:
    first, other = field.spawn_worker("prefork"), sweeper(field)
    field.ready(first)
    handle = start(field, "killed", hold=True)
    until(lambda: began(field, "killed"), first.output)
    os.killpg(first.pid, signal.SIGKILL)  # as for want of memory: no parent is left that could give the lease back
    assert first.popen.wait(30) == -signal.SIGKILL
    seen = handle.snapshot()
    assert (seen.status, seen.execution_attempt) == (WorkflowStatus.RUNNING, 1)

    second = field.worker()
    until(lambda: len(began(field, "killed")) == 2, lambda: second.output() + other.output())
    taken = handle.snapshot()
    assert time.time() >= seen.lease_expires_at.timestamp()
    assert (taken.status, taken.execution_attempt, taken.run_id) == (WorkflowStatus.RUNNING, 2, seen.run_id)
    release(field, "killed")

    assert handle.wait(30).result == began(field, "killed")[1]
    assert handle.snapshot().execution_attempt == 2
    assert_final(field, handle)


def test_f7_runs_that_end_between_two_heartbeats_are_never_taken_for_dead(field: Any, until: Any) -> None:
    lease_timeout = 2 * LEASE  # so that a busy machine is no reason to lose one
    worker = field.spawn_worker(FIELD_LEASE=str(lease_timeout))
    eager = [sweeper(field, JARVIS_SWEEP_EVERY="0.02") for _ in range(2)]
    field.ready(worker)
    handles = [start(field, f"short-{number}") for number in range(10)]  # these end before their first heartbeat
    beaten = [start(field, f"beaten-{number}", hold=True) for number in range(2)]
    until(lambda: all(began(field, handle.workflow_id) for handle in beaten), worker.output)
    for handle in beaten:
        lease = handle.snapshot().lease_expires_at
        until(lambda handle=handle, lease=lease: handle.snapshot().lease_expires_at > lease, worker.output)
        release(field, handle.workflow_id)  # right behind a heartbeat, and before the next
    for handle in (*handles, *beaten):
        assert handle.wait(30).result == worker.pid
    ended = {handle.workflow_id: kept(field, handle.workflow_id) for handle in (*handles, *beaten)}

    over = time.time() + lease_timeout + 0.5  # until the lease that each had last is over, and sweepers have looked since
    until(lambda: time.time() > over)
    for handle in (*handles, *beaten):
        assert kept(field, handle.workflow_id) == ended[handle.workflow_id]
        assert handle.snapshot().execution_attempt == 1
        assert began(field, handle.workflow_id) == [worker.pid]
    assert_final(field, beaten[0])
    assert all(each.popen.poll() is None for each in eager)


def test_f7_a_process_that_lingers_long_after_its_run_has_ended_takes_nothing_back(field: Any, until: Any) -> None:
    lingering, other = field.spawn_worker(JARVIS_SHUTDOWN_GRACE="60"), sweeper(field)
    field.ready(lingering)
    field.store.set("field:linger", 1)
    handle = start(field, "lingering")
    assert handle.wait(30).result == lingering.pid
    before, told = kept(field, "lingering"), time.monotonic()
    lingering.signal(signal.SIGTERM)

    second = field.worker()
    until(lambda: time.monotonic() > told + 2 * LEASE)
    assert lingering.popen.poll() is None, "it still lingers, two leases later"
    assert kept(field, "lingering") == before
    assert_final(field, handle)

    field.store.delete("field:linger")
    assert lingering.popen.wait(30) == 0
    assert kept(field, "lingering") == before
    assert began(field, "lingering") == [lingering.pid]
    assert "lease given back" not in lingering.output() + second.output() + other.output()


def test_f7_a_sweeper_and_a_worker_that_were_stopped_for_long_decide_nothing_when_they_go_on(field: Any, until: Any) -> None:
    worker, stopped = field.spawn_worker(), sweeper(field, FIELD_STOPS="1")
    field.ready(worker)
    handle = start(field, "paused", hold=True)
    until(lambda: began(field, "paused"), worker.output)

    # The worker stands still; when its lease has ended the sweeper sees that, and is stopped before it can act on it.
    field.store.set("field:freeze", "paused")
    worker.signal(signal.SIGSTOP)
    until(lambda: psutil.Process(stopped.pid).status() == psutil.STATUS_STOPPED, stopped.output)
    since = time.monotonic()
    assert time.time() >= handle.snapshot().lease_expires_at.timestamp()

    second, other = field.spawn_worker(), sweeper(field)
    field.ready(second)
    until(lambda: len(began(field, "paused")) == 2, lambda: second.output() + other.output())
    release(field, "paused")
    assert handle.wait(30).result == second.pid
    before = kept(field, "paused")
    until(lambda: time.monotonic() > since + 2 * LEASE)

    for process in (stopped, worker):
        process.signal(signal.SIGCONT)
    until(lambda: field.store.lrange("field:decided", 0, -1), stopped.output)
    assert field.store.lrange("field:decided", 0, -1) == [f"{stopped.pid} False".encode()]
    until(lambda: "step completed" in worker.output(), worker.output)
    worker.signal(signal.SIGTERM)  # it leaves once it has tried to record what its node returned
    assert worker.popen.wait(30) == 0

    assert kept(field, "paused") == before
    assert began(field, "paused") == [worker.pid, second.pid]
    assert handle.snapshot().execution_attempt == 2
    assert_final(field, handle)
    assert stopped.popen.poll() is None
