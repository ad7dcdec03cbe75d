"""A run on a line: pure."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

from console.wording import moment

if TYPE_CHECKING:
    from persistence import IndexEntry
    from workers.history import PastRun

__all__ = ["RunRow", "iso", "row_as_json", "shown_moment", "table_of"]

ERROR_WIDTH = 80


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. Moments are Unix seconds; ``started`` is None for a run without a history."""

    workflow_id: str
    run_id: str
    name: str
    status: str
    tag: str | None
    started: float | None
    ended: float | None
    attempts: int
    steps: int | None
    step: str
    error: str | None
    retry_at: float | None

    @classmethod
    def of_past(cls, run: "PastRun") -> Self:
        """A run as its history tells it."""
        error = None if run.error is None else f"{run.error}: {run.message or ''}".rstrip(": ")
        return cls(
            run.workflow_id,
            run.run_id,
            run.name,
            run.status,
            run.tag,
            run.started,
            run.ended,
            run.attempts,
            run.steps,
            run.step,
            error,
            run.retry_at,
        )

    @classmethod
    def of_entry(cls, entry: "IndexEntry") -> Self:
        """A run as the store's index shows it."""
        from workflow.index import RunSummary

        summary = RunSummary.of(entry)
        known = (entry.partition, summary.run_id, entry.name, entry.status, entry.tag)
        return cls(*known, None, None, summary.attempt, None, summary.step, None, None)

    def has(self, text: str) -> bool:
        """Whether the words are in what the row shows."""
        parts = (self.workflow_id, self.run_id, self.name, self.tag, self.step, self.error)
        return text.casefold() in "\n".join(part for part in parts if part).casefold()


def table_of(rows: Iterable[RunRow], zone: ZoneInfo) -> list[str]:
    """The rows as aligned lines, times by the operator's clock."""
    cells = [(shown_moment(row.started, zone), row.status, row.name, row.workflow_id, _where(row, zone)) for row in rows]
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in range(4)]
    return [
        "  ".join([*(text.ljust(width) for text, width in zip(cell, widths, strict=False)), cell[4]]).rstrip() for cell in cells
    ]


def shown_moment(at: float | None, zone: ZoneInfo) -> str:
    """A moment by the operator's clock; a dash for none."""
    return "-" if at is None else moment(dt.datetime.fromtimestamp(at, dt.UTC), zone)


def iso(at: float | None) -> str | None:
    """A moment for programs."""
    return None if at is None else dt.datetime.fromtimestamp(at, dt.UTC).isoformat()


def row_as_json(row: RunRow) -> dict[str, Any]:
    """The row for programs."""
    return {
        "workflow_id": row.workflow_id,
        "run_id": row.run_id,
        "name": row.name,
        "status": row.status,
        "tag": row.tag,
        "started": iso(row.started),
        "ended": iso(row.ended),
        "attempts": row.attempts,
        "steps": row.steps,
        "step": row.step or None,
        "error": row.error,
        "retry_at": iso(row.retry_at),
    }


def _where(row: RunRow, zone: ZoneInfo) -> str:
    """What a person wants to know first of a run in its status."""
    if row.status == "failed":
        again = "" if row.retry_at is None else f"; again at {shown_moment(row.retry_at, zone)}"
        return f"{' '.join((row.error or 'nobody knows why').split())[:ERROR_WIDTH]}{again}"
    taken = f"attempt {row.attempts}" if row.attempts > 1 else ""
    return "  ".join(part for part in (row.step, taken) if part)
