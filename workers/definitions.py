"""The mesh's own workflows, registered for workers. Settings list this module unless told otherwise."""

from mesh.briefing import DailyBriefingWorkflow
from mesh.watchdog import WatchdogWorkflow
from workers.registry import register

__all__ = ["BRIEFING", "SWEEP_RETAIN_FOR", "WATCHDOG"]

BRIEFING = "daily-briefing"
WATCHDOG = "watchdog"
SWEEP_RETAIN_FOR = 3600
"""Seconds for which a sweep is kept: longer than any schedule may fire twice for one slot."""

register(BRIEFING, DailyBriefingWorkflow.from_id)
register(WATCHDOG, lambda workflow_id: WatchdogWorkflow(workflow_id, retain_for=SWEEP_RETAIN_FOR))
