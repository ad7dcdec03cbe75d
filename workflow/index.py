"""What the due index may know of a run, so that schedulers and listings need not read it.

The summary is JSON: which run, which attempt, the step it is at, and how often a hint has been sent without anything moving.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from persistence import IndexEntry, Persistence, PersistenceError
from workflow.control import Control
from workflow.records import CONTROL
from workflow.status import WorkflowStatus

__all__ = ["HINT_DELAY", "MAX_HINT_DELAY", "RunSummary", "entry_of", "make_due", "postpone", "put_off"]

HINT_DELAY = 5
"""Seconds after ignition in which the first hint is expected to arrive."""
MAX_HINT_DELAY = 60
"""Seconds between hints at most, so that a backlog is not hinted again and again."""
_ENDED = (WorkflowStatus.COMPLETED.value, WorkflowStatus.CANCELLED.value)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of one index entry."""

    run_id: str
    attempt: int
    step: str = ""
    hints: int = 0

    @classmethod
    def of(cls, entry: IndexEntry) -> Self:
        """The summary in an index entry of a run. Raises `PersistenceError` when it holds none."""
        try:
            stored = cast(dict[str, Any], json.loads(entry.summary))
            return cls(**stored)
        except (ValueError, TypeError) as trouble:
            raise PersistenceError(
                f"the index entry of workflow {entry.partition!r} is corrupt: {entry.summary!r}"
            ) from trouble

    def to_text(self) -> str:
        """The stored text."""
        shown = {"run_id": self.run_id, "attempt": self.attempt, "step": self.step, "hints": self.hints}
        return json.dumps(shown)


def entry_of(
    workflow_id: str, control: Control, *, name: str, tag: str | None, step: str, now: float, wake: float | None = None
) -> IndexEntry:
    """The entry that belongs to a control record. ``wake`` is for a run that is settled: when it is tried again, or its kept
    result may be forgotten.
    """
    return IndexEntry(
        partition=workflow_id,
        due=_due(control, now, wake),
        name=name,
        status=control.status.value,
        tag=tag,
        summary=RunSummary(control.run_id, control.attempt, step).to_text(),
        awaits=_awaited(control),
    )


def _awaited(control: Control) -> str | None:
    """The event that a suspended run waits for."""
    suspended = control.status is WorkflowStatus.SUSPENDED and control.awaits_input
    return control.interrupt.request.awaited_event if suspended and control.interrupt is not None else None


def _due(control: Control, now: float, wake: float | None) -> float | None:
    match control.status:
        case WorkflowStatus.PENDING:
            return now + HINT_DELAY
        case WorkflowStatus.RUNNING:
            return control.lease_expires_at
        case WorkflowStatus.SUSPENDED if control.awaits_input and control.interrupt is not None:
            request = control.interrupt.request
            if request.listens_since is not None:
                return now  # what it waits for may be on the bus already: somebody must look
            return None if request.deadline is None else request.deadline.timestamp()
        case WorkflowStatus.SUSPENDED:
            return now + HINT_DELAY  # its answer is there: whoever left it has sent a hint as well
        case WorkflowStatus.COMPLETED | WorkflowStatus.FAILED:
            return wake
        case WorkflowStatus.CANCELLED:
            return wake if control.lease_expires_at is None else control.lease_expires_at
        case _:
            return None


def postpone(store: Persistence, workflow_id: str, now: float) -> IndexEntry | None:
    """Move a due entry on before a hint is sent, by a fenced write of no records. Returns the moved entry.

    None when the entry is not due any more, or when its run changed meanwhile: then somebody else has seen to it.
    """
    fence = store.get(workflow_id, CONTROL)
    entry = store.entry(workflow_id)
    if fence is None or entry is None or entry.due is None or entry.due > now:
        return None
    moved = _hinted(entry, now)
    return moved if store.write_if_unchanged(workflow_id, CONTROL, fence, {}, index=moved) else None


def make_due(store: Persistence, workflow_id: str, run_id: str, at: float) -> IndexEntry | None:
    """Ask for a run to be continued at a moment (Unix seconds), whatever its entry says.

    None when this run is not the current one any more, has changed meanwhile, waits for an answer, or has ended: then its due
    time says something else, which is not to be lost.
    """
    fence = store.get(workflow_id, CONTROL)
    entry = store.entry(workflow_id)
    if fence is None or entry is None or entry.status in _ENDED or entry.awaits is not None:
        return None
    if RunSummary.of(entry).run_id != run_id:
        return None
    # Whoever asks has the run in hand: earlier hints were not lost, and do not delay those that follow.
    due = replace(entry, due=at, summary=replace(RunSummary.of(entry), hints=0).to_text())
    return due if store.write_if_unchanged(workflow_id, CONTROL, fence, {}, index=due) else None


def put_off(store: Persistence, workflow_id: str, until: float) -> bool:
    """Leave a due entry alone until a moment (Unix seconds), by a fenced write of no records, whatever it is due for."""
    fence = store.get(workflow_id, CONTROL)
    entry = store.entry(workflow_id)
    if fence is None or entry is None:
        return False
    return store.write_if_unchanged(workflow_id, CONTROL, fence, {}, index=replace(entry, due=until))


def _hinted(entry: IndexEntry, now: float) -> IndexEntry:
    """The entry after one more hint: due again later, with a delay that doubles up to `MAX_HINT_DELAY`."""
    summary = RunSummary.of(entry)
    delay = min(HINT_DELAY * 2**summary.hints, MAX_HINT_DELAY)
    return replace(entry, due=now + delay, summary=replace(summary, hints=summary.hints + 1).to_text())
