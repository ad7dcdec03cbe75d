"""One sweep of the watchdog, executed by the process that asks for it, and recorded as a run like any other.

So a mesh whose workers have all stopped still says so: the sweeper's process sweeps.
"""

import datetime as dt
from typing import Any

from mesh.watchdog import WatchdogRequest
from workers.client.editions import reserved_run_id
from workers.composition import Runtime
from workers.definitions import WATCHDOG
from workers.segments import run_segment
from workflow import ExecutionRequest, WorkflowRefusedError

__all__ = ["begin_sweep", "sweep_watchdog"]


def sweep_watchdog(runtime: Runtime, workflow_id: str, now: dt.datetime) -> dict[str, Any] | None:
    """Sweep and say what was found. None when this sweep has been made, or is being made."""
    definition = runtime.definition(WATCHDOG, workflow_id)
    try:
        return definition.run(ExecutionRequest.start(_request(runtime, now), run_id=workflow_id)).execution.result
    except WorkflowRefusedError:
        return None


def begin_sweep(runtime: Runtime, workflow_id: str, now: dt.datetime, *, tag: str | None = None) -> None:
    """Record a sweep, unless it is recorded, and make it. If this process dies in between, a worker makes it."""
    run_id = reserved_run_id(workflow_id)
    try:
        runtime.definition(WATCHDOG, workflow_id).ignite(_request(runtime, now), run_id=run_id, tag=tag)
    except WorkflowRefusedError:
        return
    run_segment(runtime, WATCHDOG, workflow_id, run_id)


def _request(runtime: Runtime, now: dt.datetime) -> WatchdogRequest:
    watchdog = runtime.settings.watchdog
    return WatchdogRequest(agents=watchdog.agents, checked_at=now, stale_after_seconds=watchdog.stale_after_seconds)
