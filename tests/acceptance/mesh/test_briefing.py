"""The briefing through real workers: end to end, a failing agent, kill -9 between two steps, a lost hint, a server restart."""

import datetime as dt
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from mesh.briefing import BriefingStarted
from workers.embedded import start_server
from workers.processes import Supervisor
from workflow import WorkflowStatus

pytestmark = pytest.mark.processes

DATE = dt.date(2026, 11, 30)
ID = f"jarvis-briefing-{DATE}"
TOPICS = ["research.completed", "operations.completed", "briefing.ready"]
PATIENCE = 60


def signal_ids(mesh: Any) -> list[str]:
    return [fact.id for fact in mesh.client.runtime.signals.read(("*.completed", "briefing.ready"))]


@pytest.mark.parametrize("pool", ["threads", "prefork", "solo"])
def test_a_briefing_runs_end_to_end_and_each_signal_is_there_once(mesh: Any, pool: str) -> None:
    mesh.worker(pool)

    handle = mesh.client.enqueue_briefing(DATE)
    result = handle.wait(PATIENCE)

    assert handle.created
    assert (result.status, result.result) == (WorkflowStatus.COMPLETED, f"briefing of {DATE}")
    assert mesh.asked() == ["research", "operations", "briefing"]
    assert signal_ids(mesh) == [f"{ID}/{topic}" for topic in TOPICS]
    assert mesh.client.runtime.knowledge.get(f"briefing/{DATE}/final") == f"briefing of {DATE}"


def test_a_finished_briefing_is_kept_and_asks_nobody_again(mesh: Any) -> None:
    mesh.worker()
    first = mesh.client.enqueue_briefing(DATE)
    first.wait(PATIENCE)

    again = mesh.client.enqueue_briefing(DATE)

    assert not again.created
    assert again.run_id == first.run_id
    assert again.wait(PATIENCE).result == f"briefing of {DATE}"
    assert mesh.asked() == ["research", "operations", "briefing"]


def test_another_edition_is_a_run_of_its_own(mesh: Any) -> None:
    mesh.worker()
    mesh.client.enqueue_briefing(DATE).wait(PATIENCE)

    second = mesh.client.enqueue_briefing(DATE, again=True)

    assert second.wait(PATIENCE).status is WorkflowStatus.COMPLETED
    assert second.workflow_id == f"{ID}.2"
    assert mesh.client.runtime.knowledge.get(f"briefing/{DATE}.2/final") == f"briefing of {DATE}"


def test_without_retention_a_finished_id_runs_again_and_adds_no_signal(mesh: Any) -> None:
    runtime = mesh.client.runtime

    def run() -> Any:
        return runtime.definition("daily-briefing", ID).reconfigure(retain_for=None).run()

    assert run().execution.result == f"briefing of {DATE}"
    mesh.redis.set("test:answer:research", "other news")
    run()

    assert mesh.asked() == ["research", "operations", "briefing"] * 2
    assert signal_ids(mesh) == [f"{ID}/{topic}" for topic in TOPICS]
    assert runtime.knowledge.get(f"briefing/{DATE}/research") == "other news"


def test_an_agent_that_fails_is_asked_again_and_the_research_is_not(mesh: Any) -> None:
    mesh.redis.set("test:fail:operations", "1")
    mesh.worker()
    failed = mesh.client.enqueue_briefing(DATE).wait(PATIENCE)
    assert failed.status is WorkflowStatus.FAILED
    assert str(failed.failure) == "RuntimeError: operations is ill"

    resumed = mesh.client.enqueue_briefing(DATE)

    assert not resumed.created
    assert resumed.wait(PATIENCE).result == f"briefing of {DATE}"
    assert mesh.asked() == ["research", "operations", "operations", "briefing"]
    assert signal_ids(mesh) == [f"{ID}/{topic}" for topic in TOPICS]


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_after_kill_9_between_research_and_operations_another_worker_finishes(mesh: Any, until: Any, pool: str) -> None:
    mesh.hold("operations")
    first = mesh.worker(pool)
    handle = mesh.client.enqueue_briefing(DATE)
    until(lambda: mesh.asked() == ["research", "operations"], "operations is asked")

    first.kill()
    mesh.release("operations")
    mesh.sweeper()
    mesh.worker(pool)

    assert handle.wait(PATIENCE).result == f"briefing of {DATE}"
    assert mesh.asked() == ["research", "operations", "operations", "briefing"]
    assert handle.snapshot().execution_attempt == 2
    assert signal_ids(mesh) == [f"{ID}/{topic}" for topic in TOPICS]


def test_a_hint_that_never_arrived_is_replaced_by_the_sweeper(mesh: Any) -> None:
    mesh.worker()
    mesh.client.runtime.definition("daily-briefing", ID).ignite(BriefingStarted(date=DATE))

    mesh.sweeper()

    found = mesh.client.start("daily-briefing", ID)
    assert not found.created
    assert found.wait(PATIENCE).result == f"briefing of {DATE}"
    assert mesh.asked() == ["research", "operations", "briefing"]


def test_a_server_that_stops_and_starts_during_a_briefing_delays_it_only(
    make_mesh: Callable[[str], Any], until: Any, tmp_path: Path
) -> None:
    with Supervisor(tmp_path / "server") as supervisor:
        mesh = make_mesh(start_server(supervisor).store_url)
        mesh.hold("operations")
        mesh.sweeper()
        worker = mesh.worker()
        handle = mesh.client.enqueue_briefing(DATE)
        until(lambda: mesh.asked() == ["research", "operations"], "operations is asked")

        os.kill(mesh.redis.info()["process_id"], signal.SIGTERM)
        until(lambda: "Connection to broker lost" in worker.output(), f"the worker notices: {worker.output()}")
        supervisor.watch(until=lambda: _answers(mesh))
        mesh.release("operations")

        assert handle.wait(PATIENCE).result == f"briefing of {DATE}"
        assert mesh.asked().count("research") == 1
        assert signal_ids(mesh) == [f"{ID}/{topic}" for topic in TOPICS]


def _answers(mesh: Any) -> bool:
    try:
        return bool(mesh.redis.ping())
    except redis.RedisError:
        return False
