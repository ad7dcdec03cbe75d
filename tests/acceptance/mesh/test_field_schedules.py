"""Cases from the field: restarts that repeat a run, runs that die half-way, and two schedulers that both think they lead."""

import datetime as dt
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from workers.schedules.catalogue import scheduled
from workers.schedules.cursor import CursorStore
from workflow import WorkflowStatus
from workflow.store import IGNITIONS_LOG

pytestmark = pytest.mark.processes

EVENING = "2026-11-29T20:00:00+01:00"
BRIEFING = "jarvis-briefing-2026-11-30"
ROLES = ["research", "operations", "briefing"]
PATIENCE = 60
CUTS = 25
"""Connections that are cut while several look: a look makes a few."""


def morning(time: str) -> str:
    return f"2026-11-30T{time}+01:00"


def look(mesh: Any, at: str) -> Any:
    """A process that looks at the schedules at this moment."""
    return mesh.spawn("look", "-m", "dying_scheduler", at, "0")


def looked(mesh: Any, at: str) -> None:
    process = look(mesh, at)
    assert process.popen.wait(PATIENCE) == 0, process.output()


def started(mesh: Any) -> list[str]:
    entries = mesh.client.runtime.store.read_log(f"{IGNITIONS_LOG}daily-briefing", limit=1000)
    return [entry.data.decode() for entry in entries]


def ready(mesh: Any) -> list[str]:
    return [fact.id for fact in mesh.client.runtime.signals.read(["briefing.ready"])]


def status(mesh: Any, workflow_id: str = BRIEFING) -> WorkflowStatus | None:
    found = mesh.client.inspect(workflow_id)
    return None if found is None else found.status


# --- D1: a restart repeats a run that already happened ----------------------------------------------------------------------


def test_d1_restarts_after_the_run_make_no_second_briefing(mesh: Any, until: Any) -> None:
    looked(mesh, EVENING)
    worker = mesh.worker()
    looked(mesh, morning("07:00:05"))
    until(lambda: status(mesh) is WorkflowStatus.COMPLETED, worker.output)

    for at in ("07:01:00", "07:01:30", "07:30:00", "07:30:01", "11:00:00"):
        worker.kill()
        looked(mesh, morning(at))
        worker = mesh.spawn("worker", "-m", "celery", "-A", "workers", "worker", "--pool", "solo", "--loglevel", "INFO")
    until(lambda: " ready." in worker.output(), worker.output)

    assert started(mesh) == [BRIEFING]
    assert mesh.asked() == ROLES
    assert ready(mesh) == [f"{BRIEFING}/briefing.ready"]
    [view] = [one for one in mesh.client.schedules() if one.name == "daily-briefing"]
    assert (view.last.workflow_id, view.last.outcome, view.last.late) == (BRIEFING, "completed", False)


# --- D2: killed mid-run, so the day is silently lost ------------------------------------------------------------------------


@dataclass
class Slot:
    """A briefing that was due twenty minutes ago, by the operator's clock, and was started then."""

    mesh: Any
    at: dt.datetime

    @property
    def workflow_id(self) -> str:
        return f"jarvis-briefing-{self.at.date()}"

    def begin(self) -> None:
        for moment in (self.at - dt.timedelta(hours=1), self.at + dt.timedelta(seconds=5)):
            looked(self.mesh, moment.isoformat())

    def status(self) -> WorkflowStatus | None:
        return status(self.mesh, self.workflow_id)


@pytest.fixture
def slot(mesh: Any) -> Slot:
    at = dt.datetime.now(dt.UTC).replace(second=0, microsecond=0) - dt.timedelta(minutes=20)
    config = mesh.folder / "jarvis.toml"
    config.write_text(f'[operator]\nzone = "UTC"\n[schedule]\nbriefing = "{at:%H:%M}"\n')
    mesh.environment = {**mesh.environment, "JARVIS_CONFIG": str(config)}
    return Slot(mesh, at)


@pytest.mark.parametrize(("killed_at", "asked"), [("research", 1), ("operations", 2), ("delivery", 3)])
def test_d2_a_run_whose_worker_was_killed_goes_on_and_says_that_it_is_late(
    mesh: Any, slot: Slot, until: Any, killed_at: str, asked: int
) -> None:
    mesh.hold(killed_at)
    first = mesh.worker()
    slot.begin()
    until(lambda: len(mesh.asked()) == asked and (killed_at != "delivery" or mesh.redis.llen("test:delivering")), first.output)
    assert started(mesh) == [slot.workflow_id], "the slot is recorded before any work is done"
    first.kill()
    mesh.release(killed_at)
    kept = mesh.asked()

    mesh.sweeper()
    second = mesh.worker()
    until(lambda: slot.status() is WorkflowStatus.COMPLETED, second.output)

    # Only the agent that was at work when its worker died is asked again.
    again = [killed_at] if killed_at in ROLES else []
    assert mesh.asked() == [*kept, *again, *ROLES[asked:]]
    assert mesh.client.inspect(slot.workflow_id).execution_attempt == 2
    assert ready(mesh) == [f"{slot.workflow_id}/briefing.ready"]
    text = mesh.client.runtime.knowledge.get(f"briefing/{slot.at.date()}/final")
    assert text.startswith(f"*Late edition: due at {slot.at:%H:%M}, written at ")


def test_d2_of_a_run_that_cannot_be_finished_people_are_told(mesh: Any, slot: Slot, until: Any) -> None:
    mesh.redis.set("test:fail:operations", "1000")
    worker = mesh.worker()
    mesh.sweeper()
    slot.begin()

    until(lambda: mesh.client.runtime.signals.read(["workflow.failed"]), worker.output)

    [told] = mesh.client.runtime.signals.read(["workflow.failed"])
    assert (told.payload["workflow_id"], told.payload["message"]) == (slot.workflow_id, "operations is ill")


# --- D6: two schedulers both think they lead --------------------------------------------------------------------------------


def test_d6_looks_whose_connections_are_dropped_start_each_slot_once(mesh: Any, until: Any) -> None:
    """Several look at once, and their connections are cut again and again."""
    looked(mesh, EVENING)
    looks = [look(mesh, morning("07:00:05")) for _ in range(3)]
    cut = 0
    while cut < CUTS and any(process.popen.poll() is None for process in looks):
        cut += mesh.redis.client_kill_filter(_type="normal", skipme=True)
    for process in looks:
        assert process.popen.wait(PATIENCE) == 0, process.output()
    looked(mesh, morning("07:00:06"))

    assert cut > 0
    assert started(mesh) == [BRIEFING]


def test_d6_a_scheduler_that_was_stopped_in_mid_slot_finds_that_others_have_done_it(mesh: Any, until: Any) -> None:
    """Beat is stopped for longer than any lease of its, while another one starts the slot; then it goes on."""
    looked(mesh, EVENING)
    schedule = next(one for one in scheduled(mesh.client.runtime.settings) if one.schedule.name == "daily-briefing")
    cursors = CursorStore(mesh.client.runtime.store, schedule.schedule)
    before = cursors.read()
    slow = mesh.spawn("look", "-m", "stopping_scheduler", morning("07:00:05"))
    until(lambda: mesh.redis.exists("test:stopped"), slow.output)

    looked(mesh, morning("07:05:00"))
    assert cursors.read() != before
    slow.popen.send_signal(signal.SIGCONT)
    slow.popen.wait(PATIENCE)

    assert started(mesh) == [BRIEFING]
    assert cursors.read().at == dt.datetime(2026, 11, 30, 6, tzinfo=dt.UTC)
