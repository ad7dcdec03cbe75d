"""A run that fails for good is an alert and is listed, a person has it tried again, and another one watches it finish."""

import datetime as dt
import json
from typing import Any

import pytest

from workers.signals.alerts import alert_text

pytestmark = pytest.mark.processes

DATE = dt.date(2026, 11, 30)
ID = f"jarvis-briefing-{DATE}"
PATIENCE = 60


def jarvis(mesh: Any, *arguments: str) -> tuple[int, str]:
    process = mesh.spawn("jarvis", "-m", "console.main", *arguments)
    return process.popen.wait(PATIENCE), process.output()


def test_a_run_that_failed_for_good_alerts_is_listed_and_is_completed_by_retry(mesh: Any, until: Any) -> None:
    mesh.redis.set("test:fail:operations", "1")
    mesh.worker()
    mesh.sweeper()
    handle = mesh.client.enqueue_briefing(DATE)
    signals = mesh.client.runtime.signals

    until(lambda: signals.read(("workflow.failed",)), "the failure is a signal")
    [failed] = signals.read(("workflow.failed",))
    assert failed.id == f"{ID}/{handle.run_id}/1/workflow.failed"
    assert alert_text(failed)[0] == f"{ID} failed"
    code, listed = jarvis(mesh, "runs", "list", "--status", "failed", "--json")
    assert code == 0
    assert [(row["workflow_id"], row["error"]) for row in json.loads(listed)] == [(ID, "RuntimeError: operations is ill")]

    watching = mesh.spawn("watch", "-m", "console.main", "runs", "watch", ID)
    assert watching.popen.wait(PATIENCE) == 1  # it has failed, and nobody has had it tried again yet
    assert jarvis(mesh, "runs", "retry", ID) == (0, f"retried  {ID}\n")
    assert handle.wait(PATIENCE).result == f"briefing of {DATE}"

    code, told = jarvis(mesh, "runs", "watch", ID)
    assert code == 0
    assert [line.split()[2] for line in told.splitlines()[:-1]] == [
        "started", "claimed", "step", "failed", "claimed", "step", "step", "completed",
    ]  # fmt: skip
    assert len(signals.read(("workflow.#",))) == 1
    assert mesh.asked() == ["research", "operations", "operations", "briefing"]


def test_a_run_that_other_processes_execute_is_followed_live(mesh: Any, until: Any) -> None:
    mesh.hold("operations")
    mesh.worker()
    mesh.sweeper()
    mesh.client.enqueue_briefing(DATE)
    watching = mesh.spawn("watch", "-m", "console.main", "runs", "watch", ID, "--json")

    until(lambda: '"step": "research-0"' in watching.output(), "the research is told while operations are under way")
    assert '"completed"' not in watching.output()
    mesh.release("operations")

    assert watching.popen.wait(PATIENCE) == 0
    assert '"kind": "completed"' in watching.output()
