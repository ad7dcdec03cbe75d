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
from workflow.json_codec import JsonSerializer
from workflow.leases import LeaseRenewer, Renewal
from workflow.records import Ignition
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


class SteppedRenewer(LeaseRenewer):
    """A renewer whose time moves when told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.kept = 0
        super().__init__(lambda: self.now)

    def keep(self, store: RunStore, lease_timeout: float, node_timeout: float = 3600) -> Renewal:
        """See `LeaseRenewer.keep`."""
        self.kept += 1
        return super().keep(store, lease_timeout, node_timeout)

    def release(self, renewal: Renewal) -> None:
        """See `LeaseRenewer.release`."""
        self.kept -= 1
        super().release(renewal)

    def tick(self, to: float) -> None:
        """Move the time, and wait until the thread has done what is due."""
        with self._changed:
            self.now = to
            self._changed.notify_all()
        until(self._is_idle)

    def _is_idle(self) -> bool:
        with self._changed:
            waiting = [turn for turn in self._turns if turn.renewal.store is not None]
            return len(waiting) == self.kept and all(turn.at > self.now for turn in self._turns)


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
def renewer() -> SteppedRenewer:
    """Return a renewer of the test's own, on a time that stands still."""
    return SteppedRenewer()


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


@pytest.mark.parametrize(
    "end", [lambda control: control.suspended(), lambda control: control.failed(), lambda control: control.completed()]
)
def test_a_run_that_has_settled_is_not_renewed(held, memory, end) -> None:
    store = held()
    store.commit({}, end)
    before = memory.load("w")
    assert not store.renew()
    assert memory.load("w") == before


# --- the renewer ------------------------------------------------------------------------------------------------------------


def test_a_lease_is_extended_at_a_third_of_its_length(held, memory, renewer) -> None:
    renewer.keep(held(), 60)
    memory.forget()
    extended = []
    for now in (19.9, 20, 39.9, 40, 61):
        renewer.tick(now)
        extended.append(len(memory.writes))
    assert extended == [0, 1, 1, 2, 3]


def test_many_leases_are_extended_each_in_its_turn(held, memory, renewer) -> None:
    for number in range(1, 6):
        renewer.keep(held(f"w{number}", lease=3 * number), 3 * number)
    memory.forget()
    for second in range(1, 7):
        renewer.tick(second)
        assert len(memory.writes) == sum(second // number for number in range(1, 6))


def test_one_store_in_trouble_does_not_end_the_leases_of_the_others(held, recording, renewer, caplog) -> None:
    troubled, healthy = recording(InMemoryPersistence()), recording(InMemoryPersistence())
    renewer.keep(held("a", troubled), 60)
    renewer.keep(held("b", healthy), 60)
    healthy.forget()
    for turn, error in enumerate([ValueError("not even an error of the store"), UnreachableError("down"), None], 1):
        troubled.forget()
        troubled.before = raising(error) if error else lambda call: None
        renewer.tick(20 * turn)
        assert (len(troubled.writes), len(healthy.writes)) == (1, turn)
    assert b'"commit":1' in troubled.get("a", "__control")
    assert "'a' was not renewed: down" in caplog.text


def raising(error: Exception) -> Callable[[object], None]:
    """Return what raises this error at every call."""

    def fail(call: object) -> None:
        raise error

    return fail


def test_a_node_over_its_time_is_not_renewed_but_the_next_one_is(held, memory, renewer) -> None:
    renewal = renewer.keep(held(), 60, node_timeout=30)
    memory.forget()
    renewer.node_begins(renewal, "s-0")
    extended = []
    for now in (20, 40, 60):
        renewer.tick(now)
        extended.append(len(memory.writes))
    renewer.node_ends(renewal, "s-0")
    renewer.node_begins(renewal, "s-1")
    renewer.tick(80)
    assert [*extended, len(memory.writes)] == [1, 1, 1, 2]


def test_a_released_lease_is_left_alone(held, memory, renewer) -> None:
    released = renewer.keep(held(), 60)
    renewer.keep(held("other"), 60)
    memory.forget()
    renewer.release(released)
    renewer.tick(20)
    assert len(memory.writes) == 1
    assert b'"commit":0' in memory.get("w", "__control")


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


@pytest.mark.parametrize("ending", ["exit", "go on", "complete", "raise"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_c113_a_forked_child_can_neither_renew_nor_settle_nor_continue_the_run(tmp_path, ending) -> None:
    """The child shares a file, so that what it writes would be seen; whatever it does, the parent's run goes on."""
    memory = SharedStore(tmp_path)

    def fork(event: StartEvent, state: WorkflowState) -> Next | StopEvent:
        child = os.fork()
        if child == 0:
            state["child"] = True
            memory.in_child = True
            if ending == "exit":
                os._exit(0 if renewing() == [] else 1)
            if ending == "raise":
                raise SystemExit(0)
            return StopEvent() if ending == "complete" else Next()
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
        raise ZeroDivisionError

    definition = Workflow("w", nodes=[fail], persistence=memory, lease_timeout=60)
    with pytest.raises(ZeroDivisionError):
        definition.run()
    snapshot = definition.inspect()
    assert snapshot is not None
    assert (snapshot.status, snapshot.lease_expires_at) == (WorkflowStatus.FAILED, None)
