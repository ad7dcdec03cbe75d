"""Messages to workers are hints: "this run can be continued". The store remembers; a hint that is lost is sent again."""

from typing import Any, Protocol

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

__all__ = ["PUBLISH_POLICY", "SEGMENTS", "SWEEPS", "CeleryHints", "Hints"]

SEGMENTS = "segments"
"""The queue of segments of workflows."""
SWEEPS = "sweeps"
"""The queue of scheduled work, which a burst of segments must not delay."""
RUN_SEGMENT = "workers.run_segment"
PUBLISH_POLICY: dict[str, Any] = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}
"""Celery's retries of one publication: the sweeper is the real retry, so give up soon."""

_log = structlog.get_logger(__name__)


class Hints(Protocol):
    """Somebody who can tell workers."""

    def send(self, name: str, workflow_id: str, run_id: str) -> bool:
        """Tell the workers that this run can be continued. False when the broker did not take it; never raises for that."""
        ...


class CeleryHints:
    """Hints as Celery messages."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, name: str, workflow_id: str, run_id: str) -> bool:
        """See `Hints.send`."""
        try:
            self._app.send_task(
                RUN_SEGMENT, args=[name, workflow_id, run_id], queue=SEGMENTS, retry=True, retry_policy=PUBLISH_POLICY
            )
        except (OperationalError, OSError) as trouble:
            _log.warning(
                "the broker did not take a hint; the sweeper sends it again", workflow_id=workflow_id, trouble=str(trouble)
            )
            return False
        return True
