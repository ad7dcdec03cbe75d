"""The Celery tasks. What a worker process does beside them stands in `workers.life.worker_life`."""

from typing import Any, cast

from celery import Celery, signals

from workers import segments
from workers.broker.hints import RUN_SEGMENT, SWEEPS
from workers.broker.nudging import Nudge
from workers.client import MeshClient
from workers.composition import Runtime
from workers.life.worker_life import WorkerLife
from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook
from workers.telemetry import configure_logging

__all__ = ["TICK_EVERY", "attach"]

LOOK_TASK = "workers.look_at_schedules"
TICK_EVERY = 5.0
"""Seconds between beat's ticks. A tick only asks for a look, and need not know what is due; one that comes late is dropped."""


def attach(app: Celery, runtime: Runtime) -> None:
    """Define the tasks on an app, and hook the worker's life. Raises `SettingsError` for schedules that cannot be followed."""
    look = ScheduleLook(MeshClient(runtime=runtime), scheduled(runtime.settings))

    def run_segment(name: str, workflow_id: str, run_id: str) -> None:
        segments.run_segment(runtime, name, workflow_id, run_id)

    def look_at_schedules() -> None:
        look.look_patiently()

    app.task(run_segment, name=RUN_SEGMENT)
    app.task(look_at_schedules, name=LOOK_TASK)
    options = {"queue": SWEEPS, "expires": TICK_EVERY}
    app.conf.beat_schedule = {"look-at-schedules": {"task": LOOK_TASK, "schedule": TICK_EVERY, "options": options}}

    def configure(**_: Any) -> None:
        configure_logging(runtime.settings.log_format)

    # Kept by a strong reference: the function is local.
    signals.setup_logging.connect(configure, weak=False)
    cast(Any, app).steps["consumer"].add(Nudge)
    WorkerLife(app, runtime).hook()
