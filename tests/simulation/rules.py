"""What must hold between two committed moments of one partition. Pure: each rule yields a sentence for what is broken.

A moment is the partition's control record (None without a run) and its records. The rules know of no workflow in particular.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from persistence import IndexEntry
from workflow import JsonSerializer, WorkflowStatus
from workflow.control import ActiveInterrupt, Control
from workflow.history import HistoryLine
from workflow.records import CONTROL, IGNITION, Base, answer_name, memo_key

__all__ = [
    "broken_by_deletion",
    "broken_by_transition",
    "broken_in_answers",
    "broken_in_history",
    "broken_in_index",
    "broken_in_line",
    "broken_in_records",
    "newly_accepted",
]

S = WorkflowStatus
BY_THE_OWNER = {S.RUNNING, S.SUSPENDED, S.FAILED, S.COMPLETED}
"""What a segment may make of its running run."""
CLAIMABLE = {S.PENDING, S.RUNNING, S.SUSPENDED, S.FAILED}
"""What may be taken over, settled or cancelled from outside."""
BY_ANOTHER = {S.RUNNING, S.SUSPENDED, S.CANCELLED}
ENDED = {S.COMPLETED, S.CANCELLED}
REWRITTEN = ("/__checkpoint", "/__failure", "/__outcome", "/__base", "::__wait")
"""Ends of the keys of a run's records that may be written more than once."""
TOLD_AS = {
    S.PENDING: {"started"},
    S.RUNNING: {"started", "claimed"},
    S.SUSPENDED: {"suspended"},
    S.FAILED: {"failed", "stalled"},
    S.COMPLETED: {"completed"},
    S.CANCELLED: {"cancelled"},
}
"""What the history may say of a run that has got a status."""
BASE = "/__base"
"""The record into which settled steps are folded; their own records may go then."""

_codec = JsonSerializer()


def broken_by_transition(old: Control | None, new: Control, second: int) -> Iterator[str]:
    """A written control record against the one that it replaced; ``second`` is the present one."""
    if old is None:
        if (new.status, new.attempt) not in ((S.RUNNING, 1), (S.PENDING, 0)):
            yield f"a run was born {new.status} at attempt {new.attempt}"
    elif old.run_id != new.run_id:
        yield f"run {new.run_id} was written over run {old.run_id}"
    elif old.writer == new.writer:
        yield from _broken_by_commit(old, new)
    else:
        yield from _broken_by_takeover(old, new, second)


def _broken_by_commit(old: Control, new: Control) -> Iterator[str]:
    if old == new:
        return
    if old.status is not S.RUNNING or new.status not in BY_THE_OWNER:
        yield f"a segment changed the status from {old.status} to {new.status}"
    if new.attempt != old.attempt or new.commit <= old.commit:
        yield f"commit {old.attempt}.{old.commit} was followed by {new.attempt}.{new.commit} of the same writer"
    if new.next_interrupt_id < old.next_interrupt_id:
        yield f"the next interruption went back from #{old.next_interrupt_id} to #{new.next_interrupt_id}"


def _broken_by_takeover(old: Control, new: Control, second: int) -> Iterator[str]:
    if old.status not in CLAIMABLE or new.status not in BY_ANOTHER:
        yield f"somebody else changed the status from {old.status} to {new.status}"
    if new.status is S.CANCELLED:
        return
    if new.attempt != old.attempt + 1:
        yield f"attempt {old.attempt} was followed by attempt {new.attempt}"
    if _lease_is_live(old, second):
        yield f"attempt {new.attempt} began under the live lease of attempt {old.attempt}"


def _lease_is_live(control: Control, second: int) -> bool:
    """Said once more, since the engine's own words for it are under test."""
    return control.lease_expires_at is not None and control.lease_expires_at > second


def broken_by_deletion(old: Control | None, by_owner: bool, second: int) -> Iterator[str]:
    """A deleted partition: its owner completed the run, or somebody discarded one that nobody executed."""
    if old is None:
        yield "a partition without a run was deleted"
    elif old.status is S.RUNNING and not by_owner and _lease_is_live(old, second):
        yield f"run {old.run_id} was deleted under its live lease"


def broken_in_records(new: Control, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    """Records are written once; they go only with their partition, or into a base record."""
    for key in before.keys() - {CONTROL}:
        if key not in after and not _is_folded(new, key, after):
            yield f"the record {key} was removed without being folded"
        elif key in after and after[key] != before[key] and not key.endswith(REWRITTEN):
            yield f"the record {key} was changed"
    strangers = [key for key in after if key not in (CONTROL, IGNITION) and not key.startswith(f"{new.run_id}/")]
    if strangers:
        yield f"the partition of run {new.run_id} holds {strangers}"


def _is_folded(new: Control, key: str, after: Mapping[str, bytes]) -> bool:
    """Whether the step that a record belongs to is folded into the base record of its path, or of one that forked it."""
    path, _, step = key.partition("::")[0].rpartition("/")
    data = after.get(path + BASE)
    _, _, number = step.rpartition("-")
    if data is not None and number.isdecimal():
        record: Any = _codec.loads(data)
        if int(number) < Base.from_record(record).following:
            return True
    return any(outer + BASE in after for outer in _forking(new, path))


def _forking(new: Control, path: str) -> Iterator[str]:
    """The paths, from the inside outwards, whose fork a path is a branch of; their folding may take its records."""
    while path != new.run_id:
        path = path.rpartition("/")[0]
        yield path


def newly_accepted(old: Control | None, new: Control) -> ActiveInterrupt | None:
    """The interruption whose answer this write accepted, if it did."""
    now, was = new.interrupt, _interruption_of(old, new)
    if now is None or now.input is None:
        return None
    known = was is not None and was.input is not None and was.request.id == now.request.id
    return None if known else now


def broken_in_answers(old: Control | None, new: Control, after: Mapping[str, bytes]) -> Iterator[str]:
    """An accepted answer stays in control, unchanged, until its wait has recorded it."""
    held = _interruption_of(old, new)
    if held is None or held.input is None or new.status in ENDED:
        return
    if new.interrupt is not None and new.interrupt.request.id == held.request.id:
        if new.interrupt != held:
            yield f"the accepted answer {held.input} became {new.interrupt.input}"
    elif not _is_recorded(new, held, after):
        yield f"the accepted answer {held.input} of {held.step_id} was lost"


def broken_in_line(old: Control | None, new: Control) -> Iterator[str]:
    """Waits are answered in the order in which they were reached; none is lost, and none overtakes another."""
    if old is None or old.run_id != new.run_id or new.status in ENDED:
        return
    answered = old.interrupt is not None and old.interrupt.input is not None
    left = old.waiting_steps[1:] if answered else old.waiting_steps
    if new.waiting_steps[: len(left)] != left and new.waiting_steps[: len(old.waiting_steps)] != old.waiting_steps:
        yield f"the waits {old.waiting_steps} became {new.waiting_steps}"


def _interruption_of(old: Control | None, new: Control) -> ActiveInterrupt | None:
    return old.interrupt if old is not None and old.run_id == new.run_id else None


def _is_recorded(new: Control, held: ActiveInterrupt, after: Mapping[str, bytes]) -> bool:
    key = memo_key(new.run_id, held.step_id, answer_name(held.wait))
    data = after.get(key)
    if data is None:
        return _is_folded(new, key, after)
    record: Any = _codec.loads(data)
    return held.input is not None and record["payload"] == held.input.payload


def broken_in_history(
    old: Control | None,
    new: Control | None,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    lines: Sequence[HistoryLine],
) -> Iterator[str]:
    """A write that moves a run is told of once, and no other is."""
    told = [line.kind.value for line in lines]
    if new is None:
        silent = old is not None and old.status in ENDED
        if len(told) != (0 if silent else 1):
            yield f"a run that was {old and old.status} was deleted, and the history says {told}"
        return
    moved = old is None or (old.run_id, old.attempt, old.status) != (new.run_id, new.attempt, new.status)
    if len(told) != (1 if moved or _has_more_steps(before, after) else 0):
        yield f"{old and old.status} became {new.status}, and the history says {told}"
    if moved and told and told[0] not in TOLD_AS[new.status]:
        yield f"the run became {new.status}, and the history says {told[0]}"


def _has_more_steps(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bool:
    """Whether a step was made: its record is there, or that of the steps that it was folded into."""
    own = {key for key in after if "/" in key and "::" not in key and (key.endswith(BASE) or "/__" not in key)}
    return any(before.get(key) != after[key] for key in own)


def broken_in_index(entry: IndexEntry | None, new: Control) -> Iterator[str]:
    """The index entry says what control says, so that schedulers find what is due."""
    if entry is None or entry.status != new.status.value:
        yield f"the index says {entry and entry.status}, control says {new.status}"
    elif new.status is S.RUNNING and entry.due != new.lease_expires_at:
        yield f"a running run is due at {entry.due}, its lease ends at {new.lease_expires_at}"
    elif new.status is S.CANCELLED and new.lease_expires_at is not None and entry.due is None:
        yield "a cancelled run that nobody keeps is never due to be forgotten"
    elif new.status is S.SUSPENDED and new.interrupt is not None and new.awaits_input:
        deadline = new.interrupt.request.deadline
        if entry.due != (deadline and deadline.timestamp()):
            yield f"a suspended run is due at {entry.due}, its wait ends at {deadline}"
