"""The watchdog on a real server: who is reported, and that nobody is reported twice for one silence."""

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mesh.watchdog import STALE_TOPIC, alert_key
from workers.schedules.watchdog import sweep_watchdog

pytestmark = pytest.mark.processes

NOW = dt.datetime(2026, 11, 30, 7, 0, tzinfo=dt.UTC)
LONG_AGO = NOW - dt.timedelta(hours=1)
CONFIG = """
[watchdog]
agents = ["healthy", "stale", "missing"]
stale_after_seconds = 300
"""
EXPECTED = {alert_key("stale", LONG_AGO), alert_key("missing", None)}


@pytest.fixture
def watched(mesh: Any, make_mesh: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A mesh whose settings list a healthy, a stale and a missing agent."""
    config = mesh.folder / "jarvis.toml"
    config.write_text(CONFIG)
    monkeypatch.setenv("JARVIS_CONFIG", str(config))
    made = make_mesh(mesh.url)
    made.client.runtime.heartbeats.beat("stale", LONG_AGO)
    made.client.runtime.heartbeats.beat("healthy")
    return made


def alerts(mesh: Any) -> list[str]:
    return [fact.id for fact in mesh.client.runtime.signals.read((STALE_TOPIC,))]


def test_a_sweep_reports_the_stale_and_the_missing_agent_once(watched: Any) -> None:
    runtime = watched.client.runtime
    now = dt.datetime.now(dt.UTC)

    first = sweep_watchdog(runtime, "watchdog-1", now)
    second = sweep_watchdog(runtime, "watchdog-2", now + dt.timedelta(seconds=30))

    assert first == second == {"stale": ["stale", "missing"], "healthy": ["healthy"]}
    assert set(alerts(watched)) == EXPECTED
    assert len(alerts(watched)) == 2


def test_sweeps_at_the_same_time_report_once(watched: Any) -> None:
    runtime, now = watched.client.runtime, dt.datetime.now(dt.UTC)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda number: sweep_watchdog(runtime, f"watchdog-{number % 4}", now), range(8)))

    assert sum(outcome is not None for outcome in outcomes) == 4, "each slot is swept once, whoever asks"
    assert sorted(alerts(watched)) == sorted(EXPECTED)


def test_a_sweep_beats_for_the_watchdog_itself(watched: Any) -> None:
    sweep_watchdog(watched.client.runtime, "watchdog-1", dt.datetime.now(dt.UTC))

    assert watched.client.runtime.heartbeats.last_seen("watchdog") is not None


def test_cron_can_sweep_without_beat_or_workers(watched: Any) -> None:
    sweeps = [watched.spawn("sweep", "-m", "console.main", "watchdog", "sweep") for _ in range(2)]

    assert [sweep.popen.wait(60) for sweep in sweeps] == [0, 0], [sweep.output() for sweep in sweeps]
    assert sorted(alerts(watched)) == sorted(EXPECTED)


def test_workers_beat_for_themselves_and_their_roles_and_the_consumer_records_it(watched: Any, until: Any) -> None:
    watched.worker()
    watched.spawn("consumers", "-m", "workers", "consumers")
    heartbeats = watched.client.runtime.heartbeats

    until(lambda: {"research", "operations", "briefing"} <= heartbeats.all().keys(), "every role is heard")

    assert any(agent.startswith("worker:") for agent in heartbeats.all())


def test_beat_makes_workers_sweep_and_one_slot_is_swept_once(watched: Any, until: Any) -> None:
    config = watched.folder / "jarvis.toml"
    config.write_text(CONFIG + "\n[schedule]\nwatchdog_every = 5\n")
    watched.worker()

    for number in (1, 2):
        watched.spawn("beat", "-m", "celery", "-A", "workers", "beat", "--schedule", f"beat-{number}", "--pidfile", "")

    until(lambda: watched.client.runs(name="watchdog"), "a sweep is kept")
    until(lambda: len(alerts(watched)) == 2, "both silent agents are reported")
    summaries = [json.loads(entry.summary) for entry in watched.client.runs(name="watchdog")]
    assert {summary["attempt"] for summary in summaries} == {1}
