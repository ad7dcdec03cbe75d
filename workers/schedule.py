"""What beat does when: the watchdog's sweeps and the daily briefing. A message that comes late is dropped, not piled up.

An occurrence has a workflow id of its own, made of schedule and slot, so that two beats, or a beat restarted in mid-slot, make
one run.
"""

import datetime as dt
from typing import Any

from celery.schedules import crontab

from mesh.watchdog import WatchdogRequest
from workers.client import MeshClient
from workers.composition import Runtime
from workers.definitions import WATCHDOG
from workers.hints import SWEEPS
from workers.settings import Settings
from workflow import ExecutionRequest, WorkflowRefusedError

__all__ = ["BRIEFING_TASK", "WATCHDOG_TASK", "beat_schedule", "sweep_watchdog", "watchdog_slot"]

WATCHDOG_TASK = "workers.sweep_watchdog"
BRIEFING_TASK = "workers.start_briefing"
BRIEFING_EXPIRES = 3600
"""Seconds after which a briefing message that no worker took is dropped; the next `jarvis brief` starts it anyway."""


def beat_schedule(settings: Settings) -> dict[str, Any]:
    """The entries of beat. Clock times are those of the operator's zone, which is the Celery app's."""
    every, at = settings.schedule.watchdog_every, settings.schedule.briefing
    return {
        "watchdog": {
            "task": WATCHDOG_TASK,
            "schedule": float(every),
            "options": {"queue": SWEEPS, "expires": every},
        },
        "daily-briefing": {
            "task": BRIEFING_TASK,
            "schedule": crontab(hour=str(at.hour), minute=str(at.minute)),
            "options": {"queue": SWEEPS, "expires": BRIEFING_EXPIRES},
        },
    }


def watchdog_slot(now: dt.datetime, every: int) -> str:
    """The workflow id of the sweep of this moment's slot, ``every`` seconds long."""
    start = int(now.timestamp()) // every * every
    return f"watchdog-{dt.datetime.fromtimestamp(start, dt.UTC):%Y%m%dT%H%M%SZ}"


def sweep_watchdog(runtime: Runtime, workflow_id: str, now: dt.datetime) -> dict[str, Any] | None:
    """Sweep in this process, recorded as a run like any other. None when this sweep has been made, or is being made."""
    watchdog = runtime.settings.watchdog
    event = WatchdogRequest(agents=watchdog.agents, checked_at=now, stale_after_seconds=watchdog.stale_after_seconds)
    definition = runtime.definition(WATCHDOG, workflow_id)
    try:
        return definition.run(ExecutionRequest.start(event, run_id=workflow_id)).execution.result
    except WorkflowRefusedError:
        return None


def start_briefing(runtime: Runtime) -> None:
    """Start today's briefing, or find it started."""
    MeshClient(runtime=runtime).enqueue_briefing()
