"""One run as its lines of history tell it: a value that each line moves on."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, cast

from persistence import IndexEntry, PersistenceError
from workflow import WorkflowStatus
from workflow.history import Happened, HistoryLine

__all__ = ["ABANDONED", "STATUSES", "PastRun"]

ABANDONED = "abandoned"
"""The status of a run that was discarded."""
STATUSES = (*(status.value for status in WorkflowStatus), ABANDONED)
"""Every status that a run may have here."""
SHOWN_MESSAGE = 300
"""Characters of an error's message that listings show."""

_SETTLED = {
    Happened.SUSPENDED: WorkflowStatus.SUSPENDED.value,
    Happened.FAILED: WorkflowStatus.FAILED.value,
    Happened.STALLED: WorkflowStatus.FAILED.value,
    Happened.COMPLETED: WorkflowStatus.COMPLETED.value,
    Happened.CANCELLED: WorkflowStatus.CANCELLED.value,
    Happened.ABANDONED: ABANDONED,
}
_FINAL = (WorkflowStatus.COMPLETED.value, WorkflowStatus.CANCELLED.value, ABANDONED)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run, under way or ended. Moments are Unix seconds.

    ``at`` is when something last happened to it; ``ended`` is None while it goes on by itself or waits. ``step``, ``error``
    and ``message`` are those of the last step and the last error, also when the run has got over it; ``retry_at`` and
    ``waits_for`` hold only while the run waits for that. ``lines`` counts what was told of it.
    """

    workflow_id: str
    run_id: str
    name: str
    started: float
    at: float
    status: str
    tag: str | None = None
    ended: float | None = None
    attempts: int = 0
    steps: int = 0
    step: str = ""
    error: str | None = None
    message: str | None = None
    retry_at: float | None = None
    waits_for: Mapping[str, Any] | None = None
    lines: int = 0

    @classmethod
    def begun(cls, line: HistoryLine) -> Self:
        """A run of which nothing is known but that this line tells of it."""
        return cls(line.workflow_id, line.run_id, line.name, line.started, line.at, WorkflowStatus.PENDING.value, line.tag)

    def moved_on(self, line: HistoryLine) -> Self:
        """The run after one more line."""
        status = self._status(line)
        final = status in _FINAL or (status == WorkflowStatus.FAILED.value and line.retry_at is None)
        answered = line.kind is Happened.ANSWERED
        return replace(
            self,
            at=max(self.at, line.at),
            status=status,
            ended=line.at if final and not answered else None,
            attempts=max(self.attempts, line.attempt),
            steps=self.steps + (line.kind is Happened.STEP),
            step=line.step or self.step,
            error=line.error or self.error,
            message=self.message if line.error is None else line.message,
            retry_at=line.retry_at,
            waits_for=line.waits_for,
            lines=self.lines + 1,
        )

    def _status(self, line: HistoryLine) -> str:
        if line.kind is Happened.ANSWERED:
            return self.status
        if line.kind is Happened.STARTED and line.attempt == 0:
            return WorkflowStatus.PENDING.value
        return _SETTLED.get(line.kind, WorkflowStatus.RUNNING.value)

    @property
    def is_over(self) -> bool:
        """Whether nothing can happen to the run any more, not even by hand."""
        return self.status in _FINAL

    def to_record(self) -> dict[str, Any]:
        """The stored shape. What is empty is left out."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}

    def to_summary(self) -> str:
        """The small text for listings: without what a wait shows, and with the beginning of the message."""
        shown = replace(self, waits_for=None, message=None if self.message is None else self.message[:SHOWN_MESSAGE])
        return json.dumps(shown.to_record())

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape; what a later release has added is passed over. Raises TypeError for any other."""
        return cls(**{name: value for name, value in record.items() if name in cls.__dataclass_fields__})

    @classmethod
    def of(cls, entry: IndexEntry) -> Self:
        """The run in an index entry. Raises `PersistenceError` when it holds none."""
        try:
            return cls.from_record(cast(dict[str, Any], json.loads(entry.summary)))
        except (AttributeError, TypeError, ValueError) as trouble:
            raise PersistenceError(
                f"the entry {entry.partition!r} of the history is corrupt ({trouble}): delete its partition"
            ) from trouble
