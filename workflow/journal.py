"""What each step changed in the state: the first record holds all of it, later ones only the difference.

A run of ten thousand steps therefore writes, for each, what that step changed. A single value that grows is written whole
each time it grows.
"""

from typing import Any, TypeVar

from workflow.errors import SerializationError
from workflow.records import StateChange
from workflow.serializer import Serializer
from workflow.state import WorkflowState

__all__ = ["StateJournal", "apply_change", "whole_state"]

StateT = TypeVar("StateT", bound=WorkflowState)

_SCALARS = frozenset({str, int, bool, type(None)})
_SMALL = 2**63
"""A larger number is encoded at once, as it may be too long for records."""


class StateJournal:
    """Knows the state as the records hold it, key by key, and finds what is new."""

    def __init__(self, serializer: Serializer) -> None:
        self._serializer = serializer
        self._recorded: dict[str, Any] | None = None
        """By key what tells its value from another: a small immutable value itself, the bytes of any other."""

    def change(self, state: WorkflowState) -> StateChange:
        """What to record of this state now. From here on the records are taken to hold it."""
        values = state.all()
        marks = {key: self._mark(key, value) for key, value in values.items()}
        before, self._recorded = self._recorded, marks
        if before is None:
            return StateChange(values, whole=True)
        changed = {key: values[key] for key, mark in marks.items() if key not in before or not _equal(before[key], mark)}
        return StateChange(changed, removed=tuple(key for key in before if key not in marks))

    def whole(self, state: WorkflowState) -> StateChange:
        """All of this state, to be recorded in place of what came before."""
        self._recorded = None
        return self.change(state)

    def branched(self) -> "StateJournal":
        """A journal for a branch, which begins with the same state."""
        branch = StateJournal(self._serializer)
        branch._recorded = self._recorded
        return branch

    def recorded(self, state: WorkflowState) -> None:
        """The records hold this state: what is found from now on is what changes after it."""
        self._recorded = {key: self._mark(key, value) for key, value in state.all().items()}

    def _mark(self, key: str, value: Any) -> Any:
        if type(value) in _SCALARS and not (type(value) is int and abs(value) > _SMALL):
            return value
        try:
            return self._serializer.dumps(value)
        except SerializationError as trouble:
            raise SerializationError(f"the state's {key!r} cannot be stored: {trouble}") from trouble


def _equal(one: Any, other: Any) -> bool:
    """Whether two marks are of the same value; True and 1 are not."""
    return type(one) is type(other) and one == other


def whole_state(state: WorkflowState) -> StateChange:
    """All of a state, for records that stand alone."""
    return StateChange(state.all(), whole=True)


def apply_change(state: StateT, change: StateChange) -> StateT:
    """Apply a recorded change to a state and return it. A field that the class no longer has becomes a further key."""
    gone: Any = set(change.removed)
    if change.whole:
        gone |= {key for key in state.all() if key not in type(state).model_fields and key not in change.values}
    for key in gone:
        state.delete(key)
    state.restore(change.values)
    return state
