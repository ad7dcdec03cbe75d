"""Messages to workers are hints: "this run can be continued". The store remembers; a hint that is lost is sent again."""

import time
from collections.abc import Sequence
from typing import Any, Protocol, cast

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from workers.broker.connection import CONFIRM_SECONDS

__all__ = ["PUBLISH_POLICY", "SEGMENTS", "SENT_AT", "SWEEPS", "CeleryHints", "Hints", "broker_name", "publish"]

SEGMENTS = "segments"
"""The queue of segments of workflows."""
SWEEPS = "sweeps"
"""The queue of scheduled work, which a burst of segments must not delay."""
RUN_SEGMENT = "workers.run_segment"
SENT_AT = "sent_at"
"""The header that says when a message was sent, in Unix seconds: so that people can be told for how long one has waited."""
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
            publish(self._app, RUN_SEGMENT, SEGMENTS, [name, workflow_id, run_id])
        except (OperationalError, OSError) as trouble:
            _log.warning(
                "the broker did not take a hint; the sweeper sends it again",
                workflow_id=workflow_id,
                broker=broker_name(self._app),
                trouble=str(trouble),
            )
            return False
        return True


def publish(app: Celery, task: str, queue: str, args: Sequence[Any]) -> None:
    """Put a message on a queue. Blocks for a bounded time (docs/explanation/celery.md says how long).

    Raises `kombu.exceptions.OperationalError` or OSError when the broker does not take it.
    """
    cast(Any, app).send_task(
        task,
        args=list(args),
        queue=queue,
        headers={SENT_AT: round(time.time(), 3)},
        retry=True,
        retry_policy=PUBLISH_POLICY,
        timeout=CONFIRM_SECONDS,
        confirm_timeout=CONFIRM_SECONDS,
        ignore_result=True,
    )


def broker_name(app: Celery) -> str:
    """The broker's address, for people: without its password."""
    return str(cast(Any, app.connection_for_write()).as_uri())
