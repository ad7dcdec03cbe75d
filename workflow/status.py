"""Where a run stands."""

import enum

__all__ = ["WorkflowStatus"]


class WorkflowStatus(enum.Enum):
    """The status of a run. Completed and cancelled exist in the store only while the run is retained."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    FAILED = "failed"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
