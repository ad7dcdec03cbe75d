"""Schedules with real processes: a dead beat stops nothing, two are one, and kill -9 in mid-slot leaves one run."""

import datetime as dt
import json
from typing import Any

import pytest

from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook
from workflow.store import IGNITIONS_LOG

pytestmark = pytest.mark.processes

EVENING = "2026-11-29T20:00:00+00:00"
MORNING = "2026-11-30T07:00:05+00:00"
BRIEFING = "jarvis-briefing-2026-11-30"
OPERATIONS = 5
"""Operations of the store in a look at one due slot, from the first read to the confirmation."""


def started(mesh: Any, name: str) -> list[str]:
    return [entry.data.decode() for entry in mesh.client.runtime.store.read_log(f"{IGNITIONS_LOG}{name}", limit=1000)]


def look(mesh: Any, at: str, fatal: int = 0) -> Any:
    process = mesh.spawn("look", "-m", "dying_scheduler", at, str(fatal))
    process.popen.wait(60)
    return process


@pytest.mark.parametrize("fatal", range(1, OPERATIONS + 1))
def test_a_process_that_is_killed_in_mid_slot_leaves_one_run(mesh: Any, fatal: int) -> None:
    assert look(mesh, EVENING).popen.returncode == 0

    assert look(mesh, MORNING, fatal).popen.returncode == -9
    second = look(mesh, MORNING)

    assert second.popen.returncode == 0, second.output()
    assert started(mesh, "daily-briefing") == [BRIEFING]


def test_the_places_at_which_it_is_killed_are_all_there_are(mesh: Any) -> None:
    look(mesh, EVENING)
    assert int(look(mesh, MORNING).output().splitlines()[-1]) == OPERATIONS


def test_the_sweeper_alone_keeps_the_schedules(mesh: Any, until: Any) -> None:
    """No beat, no worker: the watchdog sweeps, and a briefing that is due is recorded."""
    (mesh.folder / "jarvis.toml").write_text("[schedule]\nwatchdog_every = 5\n")
    sweeper = mesh.spawn("sweeper", "-m", "workers", "sweeper", JARVIS_CONFIG=str(mesh.folder / "jarvis.toml"))

    until(lambda: started(mesh, "watchdog"), f"a sweep is made: {sweeper.output()}")
    until(lambda: mesh.client.runtime.heartbeats.last_seen("watchdog"), "it has beaten")

    [entry] = mesh.client.runtime.store.find(name="watchdog")[:1]
    assert entry.tag == "schedule:watchdog"


def test_beats_and_sweepers_at_once_sweep_each_slot_once(mesh: Any, until: Any) -> None:
    (mesh.folder / "jarvis.toml").write_text("[schedule]\nwatchdog_every = 5\n")
    mesh.environment = {**mesh.environment, "JARVIS_CONFIG": str(mesh.folder / "jarvis.toml")}
    mesh.worker()
    for number in (1, 2):
        mesh.spawn("beat", "-m", "celery", "-A", "workers", "beat", "--schedule", f"beat-{number}", "--pidfile", "")
    sweepers = [mesh.sweeper() for _ in range(2)]

    until(lambda: len(started(mesh, "watchdog")) >= 2, "two slots are swept")
    sweepers[0].kill()
    until(lambda: len(started(mesh, "watchdog")) >= 3, "the others go on")

    slots = started(mesh, "watchdog")
    assert sorted(set(slots)) == slots
    assert {json.loads(entry.summary)["attempt"] for entry in mesh.client.runtime.store.find(name="watchdog")} == {1}


def test_a_late_briefing_is_written_once_by_a_mesh_that_comes_back(mesh: Any, until: Any) -> None:
    """The mesh was up yesterday; today it comes back after seven, and writes the one briefing that was missed."""
    settings = mesh.client.runtime.settings
    found = [one for one in scheduled(settings) if one.schedule.name == "daily-briefing"]
    now = dt.datetime.now(dt.UTC)
    ScheduleLook(mesh.client, found, now=lambda: now - dt.timedelta(days=3)).look()
    slot = found[0].schedule.previous(now)
    assert slot is not None
    workflow_id = found[0].workflow_id(slot)

    mesh.worker()
    mesh.sweeper()
    until(lambda: _status(mesh, workflow_id) == "completed", "the briefing is written")

    assert started(mesh, "daily-briefing") == [workflow_id]
    [view] = [view for view in mesh.client.schedules() if view.name == "daily-briefing"]
    assert view.last is not None
    assert (view.last.workflow_id, view.last.outcome) == (workflow_id, "completed")
    assert view.last.late is ((now - slot.at).total_seconds() > 60)


def _status(mesh: Any, workflow_id: str) -> str | None:
    entry = mesh.client.runtime.store.entry(workflow_id)
    return None if entry is None else entry.status
