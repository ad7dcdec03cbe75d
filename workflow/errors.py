"""What the engine may raise. Trouble with the store is `persistence.PersistenceError`; a node's own exception stays itself.

WorkflowError                    misuse, or a record that does not fit
├── GraphError                   the definition cannot run: names the node and the parameter; fix the definition
├── InputTranslationError        an answer cannot be delivered as given; nothing was accepted
├── SerializationError           a value cannot be stored: names the path to it; permanent, a retry would not help
├── RunStalledError              too many workers were lost with the run: it is parked; look into it, then have it tried again
└── WorkflowRefusedError         the state that the run is in forbids the call: route on ``.reason``
    ├── RunInFlightError         a start met a run that it may neither recover nor supersede
    └── StaleRunError            the run that the caller expected is not the current one

UnreadableRecordError is trouble with the store: a record is there and cannot be read.
"""

import datetime as dt
import enum
from typing import TYPE_CHECKING

from persistence import PersistenceError
from workflow.status import WorkflowStatus

if TYPE_CHECKING:
    from workflow.interrupts import InterruptRequest

__all__ = [
    "GraphError",
    "InputTranslationError",
    "RefusalReason",
    "RunInFlightError",
    "RunStalledError",
    "SerializationError",
    "StaleRunError",
    "UnreadableRecordError",
    "WorkflowError",
    "WorkflowRefusedError",
]


class RefusalReason(enum.Enum):
    """Why the engine refused a call. Route on this, never on the message."""

    RUN_IN_FLIGHT = "run_in_flight"
    NO_RUN = "no_run"
    STALE_RUN = "stale_run"
    STALE_ATTEMPT = "stale_attempt"
    EXECUTING = "executing"
    NOT_AWAITED = "not_awaited"
    COMPLETED = "completed"
    NOT_COMPLETED = "not_completed"
    CONFLICT = "conflict"
    CANCELLED = "cancelled"
    INCOMPATIBLE_VERSION = "incompatible_version"


class WorkflowError(Exception):
    """The root of this room. ``permanent`` says that trying again cannot help."""

    permanent = False


class GraphError(WorkflowError):
    """The definition cannot run as written."""

    permanent = True


class InputTranslationError(WorkflowError):
    """An answer is no JSON, or nothing waits for one. Correct the payload; the run still waits."""

    permanent = True


class SerializationError(WorkflowError):
    """A value cannot be written to the store. Give it a known type, or list its class in ``types``."""

    permanent = True


class RunStalledError(WorkflowError):
    """Worker after worker was lost with the run, without a committed step between: it is failed until it is tried again."""


class WorkflowRefusedError(WorkflowError):
    """The engine refused because of the state that a run is in. Nothing was changed."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class RunInFlightError(WorkflowRefusedError):
    """A start met a run that holds the workflow id. The message names the verb that settles it."""

    def __init__(
        self,
        message: str,
        *,
        workflow_id: str,
        run_id: str,
        status: WorkflowStatus,
        execution_attempt: int,
        lease_expires_at: dt.datetime | None,
        interrupt: "InterruptRequest | None" = None,
    ) -> None:
        super().__init__(RefusalReason.RUN_IN_FLIGHT, message)
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.status = status
        self.execution_attempt = execution_attempt
        self.lease_expires_at = lease_expires_at
        self.interrupt = interrupt


class StaleRunError(WorkflowRefusedError):
    """The expected run is not the current one. ``actual_run_id`` is None when there is no run."""

    def __init__(self, workflow_id: str, expected_run_id: str, actual_run_id: str | None) -> None:
        now = f"it is {actual_run_id!r} now" if actual_run_id else "it has ended"
        super().__init__(RefusalReason.STALE_RUN, f"run {expected_run_id!r} of workflow {workflow_id!r} is not current: {now}")
        self.workflow_id = workflow_id
        self.expected_run_id = expected_run_id
        self.actual_run_id = actual_run_id


class UnreadableRecordError(PersistenceError):
    """A record of a run cannot be read: it is corrupt, of another codec, or of another version of the program."""
