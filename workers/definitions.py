"""The mesh's own workflows, registered for workers. Settings list this module unless told otherwise."""

from mesh.briefing import DailyBriefingWorkflow
from mesh.watchdog import WatchdogWorkflow
from workers.registry import register
from workflow import RetryPolicy

__all__ = ["BRIEFING", "BRIEFING_RETRY", "SWEEP_RETAIN_FOR", "WATCHDOG"]

BRIEFING = "daily-briefing"
WATCHDOG = "watchdog"
SWEEP_RETAIN_FOR = 3600
"""Seconds for which a sweep is kept: longer than any schedule may fire twice for one slot."""

BRIEFING_RETRY = RetryPolicy(attempts=3, first_delay=5)
"""An agent that is ill for a moment is asked again by itself: the briefing is written while its operator sleeps."""


def _briefing(workflow_id: str) -> DailyBriefingWorkflow:
    return DailyBriefingWorkflow.from_id(workflow_id, retry=BRIEFING_RETRY)


register(BRIEFING, _briefing, roles=("research", "operations", "briefing"))
register(WATCHDOG, lambda workflow_id: WatchdogWorkflow(workflow_id, retain_for=SWEEP_RETAIN_FOR))
