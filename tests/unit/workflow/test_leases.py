"""Leases: who holds a run, for how long, and who keeps the lease alive (F)."""

import contextlib
import datetime as dt
import os
import threading
import time
from collections.abc import Callable

import pytest

from persistence import InMemoryPersistence, UnreachableError
from workflow import (
    Event,
    ExecutionRequest,
    RefusalReason,
    StartEvent,
    StopEvent,
    SystemClock,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    memoize,
)
from workflow.control import Control
from workflow.leases import LeaseRenewer
from workflow.records import Ignition
from workflow.serializer import JsonSerializer
from workflow.store import RunStore

DEADLINE = 10.0
"""Seconds after which a condition that has not come true fails its test."""


class Next(Event):
    pass


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.002)


def lease_of(workflow: Workflow) -> dt.datetime:
    """When the lease that the store shows ends."""
    snapshot = workflow.inspect()
    assert snapshot is not None
    assert snapshot.lease_expires_at is not None
    return snapshot.lease_expires_at


class SteppedTime:
    """A monotonic clock that moves when told to, for a renewer whose thread must notice."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def held(memory, clock):
    """Return what begins a run with a lease and returns the store that holds it."""

    def hold(workflow_id: str = "w", persistence=memory, lease: float = 60) -> RunStore:
        store = RunStore(persistence, JsonSerializer(), workflow_id, clock)
        store.lease_timeout = lease
        assert store.ignite(Control.started("r", "writer", store.lease()), Ignition("r", StartEvent(), "n"))
        return store

    return hold


@pytest.fixture
def stepped() -> SteppedTime:
    """Return the time of `renewer`."""
    return SteppedTime()


@pytest.fixture
def renewer(stepped) -> LeaseRenewer:
    """Return a renewer of the test's own, on a time that stands still."""
    return LeaseRenewer(stepped)


def tick(renewer: LeaseRenewer, stepped: SteppedTime, to: float) -> None:
    """Move the renewer's time and let its thread look."""
    stepped.now = to
    with renewer._changed:  # pyright: ignore[reportPrivateUsage]
        renewer._changed.notify_all()  # pyright: ignore[reportPrivateUsage]


# --- the lease itself -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.999])
def test_a_lease_is_never_shorter_than_asked_for(held, clock, fraction) -> None:
    clock.advance(fraction)
    store = held(lease=1)
    assert 1 <= store.control.lease_expires_at - store.now() < 2


def test_a_renewal_extends_a_live_lease_and_never_revives_one(held, clock, memory) -> None:
    store = held()
    clock.advance(30)
    assert store.renew()
    assert lease_of(Workflow("w", persistence=memory, clock=clock)) == clock.now() + dt.timedelta(seconds=60)
    clock.advance(60)
    before = memory.load("w")
    assert not store.renew()
    assert memory.load("w") == before


def test_a_renewal_that_finds_another_owner_ends_the_store(held, clock, memory) -> None:
    store = held()
    rival = RunStore(memory.inner, JsonSerializer(), "w", clock)
    assert rival.load() is not None
    rival.replace(rival.control.claimed("rival", None))
    before = memory.load("w")
    assert not store.renew()
    with pytest.raises(WorkflowRefusedError) as refused:
        store.commit({"r/late": 1})
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    assert memory.load("w") == before


@pytest.mark.parametrize("end", [lambda control: control.suspended(), lambda control: control.failed(), lambda control: control.completed()])
def test_a_run_that_has_settled_is_not_renewed(held, memory, end) -> None:
    store = held()
    store.commit({}, end)
    before = memory.load("w")
    assert not store.renew()
    assert memory.load("w") == before


# --- the renewer ------------------------------------------------------------------------------------------------------------


def test_a_lease_is_extended_at_a_third_of_its_length(held, memory, clock, renewer, stepped) -> None:
    store = held()
    memory.forget()
    renewal = renewer.keep(store, 60, 3600)
    tick(renewer, stepped, 19.9)
    clock.advance(20)
    tick(renewer, stepped, 20)
    until(lambda: len(memory.writes) == 1)
    tick(renewer, stepped, 39.9)
    tick(renewer, stepped, 40)
    until(lambda: len(memory.writes) == 2)
    renewer.release(renewal)


def test_many_leases_are_extended_each_in_its_turn(held, memory, renewer, stepped) -> None:
    renewals = [renewer.keep(held(f"w{number}", lease=3 * (number + 1)), 3 * (number + 1), 3600) for number in range(5)]
    memory.forget()
    for second in range(1, 6):
        tick(renewer, stepped, second)
        until(lambda second=second: len(memory.writes) >= sum(second // (number + 1) > 0 for number in range(5)))
    for renewal in renewals:
        renewer.release(renewal)


def test_one_store_in_trouble_does_not_end_the_leases_of_the_others(held, recording, renewer, stepped, caplog) -> None:
    troubled, healthy = recording(InMemoryPersistence()), recording(InMemoryPersistence())
    renewals = [renewer.keep(held("a", troubled), 60, 3600), renewer.keep(held("b", healthy), 60, 3600)]
    tried: list[int] = []

    def fail(call) -> None:
        tried.append(call.number)
        raise ValueError("not even an error of the store") if len(tried) == 1 else UnreachableError("down")

    troubled.before = fail
    healthy.forget()
    for turn in (1, 2, 3):
        tick(renewer, stepped, 20 * turn)
        until(lambda turn=turn: len(healthy.writes) >= turn and len(tried) >= turn)
    troubled.before = lambda call: None
    troubled.forget()
    tick(renewer, stepped, 80)
    until(lambda: len(troubled.writes) == 1)
    for renewal in renewals:
        renewer.release(renewal)


def test_a_node_over_its_time_is_not_renewed_but_the_next_one_is(held, memory, renewer, stepped) -> None:
    other = held("other")
    store = held()
    memory.forget()
    marker = renewer.keep(other, 60, 10**6)
    renewal = renewer.keep(store, 60, 30)
    tick(renewer, stepped, 20)
    until(lambda: len(memory.writes) == 2)
    tick(renewer, stepped, 40)
    until(lambda: len(memory.writes) >= 3)
    renewer.node_begins(renewal)
    tick(renewer, stepped, 60)
    until(lambda: len(memory.writes) == 5)
    renewer.release(renewal)
    renewer.release(marker)


def test_a_released_lease_is_left_alone(held, memory, renewer, stepped) -> None:
    released = renewer.keep(held(), 60, 3600)
    kept = renewer.keep(held("other"), 60, 3600)
    memory.forget()
    renewer.release(released)
    tick(renewer, stepped, 20)
    until(lambda: memory.writes)
    assert lease_changes(memory) == ["other"]
    renewer.release(kept)


def lease_changes(memory) -> list[str]:
    """The workflow ids whose control was written, by what is in the store."""
    return [workflow_id for workflow_id in ("w", "other") if b'"commit":0' not in memory.get(workflow_id, "__control")]


# --- whole runs on the real clock -------------------------------------------------------------------------------------------


def test_a_node_that_runs_longer_than_its_lease_keeps_it(memory) -> None:
    """One second of lease, a node that blocks until the store shows the third extension, and no sleep in between."""
    seen: list[dt.datetime] = []

    def slow(event: StartEvent, state: WorkflowState) -> StopEvent:
        until(lambda: note(seen, lease_of(definition)) >= 3)
        return StopEvent("kept")

    definition = Workflow("w", nodes=[slow], persistence=memory, lease_timeout=1)
    began = SystemClock().now()
    assert definition.run().execution.result == "kept"
    assert seen[-1] > began + dt.timedelta(seconds=1)


def note(seen: list[dt.datetime], lease: dt.datetime) -> int:
    """How many leases have been seen, this one included."""
    if lease not in seen:
        seen.append(lease)
    return len(seen)


def test_a_hung_node_loses_its_lease_and_another_worker_finishes(memory) -> None:
    """`node_timeout` bounds the renewal; the displaced node cannot write when it wakes, and its caller is told so."""
    hanging, wake = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        if state.execution.attempt == 1:
            hanging.set()
            wake.wait(DEADLINE)
            memoize("late", lambda: 1)
        return StopEvent(state.execution.attempt)

    definition = Workflow("w", nodes=[work], persistence=memory, lease_timeout=1, node_timeout=0, retain_completion=True)

    def first() -> None:
        try:
            definition.run()
        except WorkflowRefusedError as error:
            errors.append(error)

    worker = threading.Thread(target=first)
    worker.start()
    assert hanging.wait(DEADLINE)
    until(lambda: lease_of(definition) <= SystemClock().now())
    assert definition.run(ExecutionRequest.resume()).execution.result == 2
    before = memory.load("w")
    wake.set()
    worker.join(DEADLINE)
    assert [error.reason for error in errors] == [RefusalReason.STALE_ATTEMPT]  # pyright: ignore
    assert memory.load("w") == before


def test_without_renewal_only_steps_extend_the_lease(memory) -> None:
    threads = set(threading.enumerate())

    def step(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(len(set(threading.enumerate()) - threads))

    definition = Workflow("w", nodes=[step], persistence=memory, lease_timeout=60, lease_renewal=False)
    assert definition.run().execution.result == 0
    assert len(memory.calls) == 2


@pytest.mark.parametrize("ending", ["exit", "return", "raise"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_c113_a_forked_child_can_neither_renew_nor_settle_nor_continue_the_run(tmp_path, ending) -> None:
    """The child shares a file, so that what it writes would be seen; whatever it does, the parent's run goes on."""
    memory = SharedStore(tmp_path)

    def fork(event: StartEvent, state: WorkflowState) -> Next:
        child = os.fork()
        if child == 0:
            state["child"] = True
            memory.in_child = True
            if ending == "exit":
                os._exit(0 if renewing() == [] else 1)
            if ending == "raise":
                raise SystemExit(0)
            return Next()
        assert os.waitpid(child, 0)[1] == 0
        return Next()

    def end(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent(state.has("child"))

    definition = Workflow("w", nodes=[fork, end], persistence=memory, lease_timeout=60)
    parent = os.getpid()
    try:
        result = definition.run().execution.result
    except BaseException:
        if os.getpid() == parent:
            raise
        os._exit(0)
    if os.getpid() != parent:
        os._exit(9)
    assert result is False
    assert not (tmp_path / "written by the child").exists()


def renewing() -> list[str]:
    """The names of the threads that renew leases in this process."""
    return [thread.name for thread in threading.enumerate() if thread.name == "workflow-leases"]


class SharedStore(InMemoryPersistence):
    """A store that leaves a file behind when a forked child writes to it."""

    def __init__(self, folder) -> None:
        super().__init__()
        self.folder = folder
        self.in_child = False

    def write_if_unchanged(self, *args, **options) -> bool:
        self.betray()
        return super().write_if_unchanged(*args, **options)

    def delete_if_unchanged(self, *args, **options) -> bool:
        self.betray()
        return super().delete_if_unchanged(*args, **options)

    def betray(self) -> None:
        """Leave the file."""
        if self.in_child:
            with contextlib.suppress(OSError):
                (self.folder / "written by the child").touch()


def test_a_failed_or_suspended_run_holds_no_lease(memory) -> None:
    def fail(event: StartEvent, state: WorkflowState) -> StopEvent:
        raise ValueError

    definition = Workflow("w", nodes=[fail], persistence=memory, lease_timeout=60)
    with pytest.raises(ValueError, match=""):
        definition.run()
    snapshot = definition.inspect()
    assert snapshot is not None
    assert (snapshot.status, snapshot.lease_expires_at) == (WorkflowStatus.FAILED, None)
