"""The Celery tasks, and what a worker process does beside them: it beats, and it logs as the mesh does."""

import datetime as dt
from typing import Any

from celery import Celery, signals

from workers import schedule, segments
from workers.beats import Heart, worker_name
from workers.composition import Runtime
from workers.hints import RUN_SEGMENT
from workers.telemetry import configure_logging

__all__ = ["attach"]


def attach(app: Celery, runtime: Runtime) -> None:
    """Define the tasks on an app, and hook the worker's life."""

    def run_segment(name: str, workflow_id: str, run_id: str) -> None:
        segments.run_segment(runtime, name, workflow_id, run_id)

    def sweep_watchdog() -> None:
        now = dt.datetime.now(dt.UTC)
        slot = schedule.watchdog_slot(now, runtime.settings.schedule.watchdog_every)
        schedule.sweep_watchdog(runtime, slot, now)

    def start_briefing() -> None:
        schedule.start_briefing(runtime)

    app.task(run_segment, name=RUN_SEGMENT)
    app.task(sweep_watchdog, name=schedule.WATCHDOG_TASK)
    app.task(start_briefing, name=schedule.BRIEFING_TASK)
    app.conf.beat_schedule = schedule.beat_schedule(runtime.settings)
    _hook(runtime)


def _hook(runtime: Runtime) -> None:
    heart = Heart(runtime.signals, (*runtime.settings.roles, worker_name()), every=runtime.settings.heartbeat_every)

    def configure(**_: Any) -> None:
        configure_logging(runtime.settings.log_format)

    def begin(**_: Any) -> None:
        heart.start()

    def end(**_: Any) -> None:
        heart.stop()

    # Kept by strong references: the functions are local.
    signals.setup_logging.connect(configure, weak=False)
    signals.worker_ready.connect(begin, weak=False)
    signals.worker_shutting_down.connect(end, weak=False)
