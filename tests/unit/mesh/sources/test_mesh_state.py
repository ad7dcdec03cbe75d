"""The mesh's own state in a briefing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from mesh.sources.item import Severity
from mesh.sources.mesh_state import FailedRun, MeshFacts, MeshStateSource, mesh_items
from mesh.sources.window import Window

Windows = Callable[..., Window]
NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


def test_a_healthy_mesh_is_one_quiet_line(window: Windows) -> None:
    facts = MeshFacts(at=NOW, agents={"research": NOW, "operations": NOW}, waiting={"segments": 0})
    [item] = MeshStateSource(lambda: facts).read(window()).items

    assert item.text == "The mesh: 2 of 2 agents beat, no run has failed, nothing waits"
    assert item.severity is Severity.INFO


def test_silent_agents_and_failed_runs_come_first(window: Windows) -> None:
    facts = MeshFacts(
        at=NOW,
        agents={"briefing": None, "operations": NOW - dt.timedelta(seconds=301), "research": NOW - dt.timedelta(seconds=300)},
        failed_runs=(FailedRun("import-1", NOW, "disk full\x00"),),
        waiting={"sweeps": 0, "segments": 7},
    )

    assert [(item.text, item.severity) for item in mesh_items(facts, window())] == [
        ("Agent briefing has never been heard", Severity.CRITICAL),
        ("Agent operations has not been heard since 06:54 on 2026-11-30", Severity.CRITICAL),
        ("Run import-1 failed: disk full\ufffd", Severity.CRITICAL),
        ("The mesh: 1 of 3 agents beat, failed runs: 1, 7 wait in segments", Severity.INFO),
    ]


def test_of_many_failed_runs_the_latest_are_shown_and_all_counted(window: Windows) -> None:
    runs = tuple(FailedRun(f"run-{number}", NOW - dt.timedelta(hours=number), "no") for number in range(9))
    items = list(mesh_items(MeshFacts(at=NOW, failed_runs=runs), window()))

    assert [item.key for item in items] == [*(f"run/run-{number}" for number in range(5)), "summary"]
    assert items[-1].text == "The mesh: no agents are expected, failed runs: 9, nothing waits"
