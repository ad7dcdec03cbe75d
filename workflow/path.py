"""The settled steps of a run's path, as its records hold them, and how they are folded.

A long run would keep a record for every step that it ever made. When 256 settled steps have come together they are folded into
one base record, and their records and memos go; what one write may not delete goes with the next ones. So a run of ten thousand
steps resumes about as fast as one of ten.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from workflow.errors import WorkflowError
from workflow.events import Event
from workflow.journal import StateJournal
from workflow.records import Base, StateChange, StepRecord, base_key, step_key
from workflow.state import WorkflowState
from workflow.store import RunStore

__all__ = ["FOLD_AFTER", "RecordedPath"]

FOLD_AFTER = 256
"""Settled steps that are kept as records of their own, and records that one write deletes at most."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a record key belongs: a step's number and name, and whether it is the step itself or something inside it."""

    index: int
    name: str
    is_step: bool


class RecordedPath:
    """The main path of one run. Reads what its store has loaded, each record once; asks for nothing more."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self._steps: dict[int, StepRecord] = {}
        self._prefix = step_key(store.control.run_id, "")
        self._base = store.read(base_key(store.control.run_id), Base.from_record)
        self._names: dict[int, str] = {}
        self._leftovers: deque[str] = deque()
        for key in store.record_keys:
            self._note(key)

    @property
    def first(self) -> int:
        """The number of the first step that is not folded."""
        return self._base.following if self._base else 0

    @property
    def folded_state(self) -> StateChange | None:
        """The state that the folded steps left, or None when nothing is folded."""
        return self._base.state if self._base else None

    def first_event(self) -> Event:
        """The event of that step. Raises `WorkflowError` when the program does not define the start event."""
        if self._base is not None:
            return self._base.event
        event = self.store.ignition.start_event
        if not isinstance(event, Event):
            raise WorkflowError(f"the start event {event!r} is not defined in this program: import the module that defines it")
        return event

    def name_of(self, index: int) -> str | None:
        """The name of the step that is recorded under this number, or None."""
        return self._names.get(index)

    def step(self, index: int) -> StepRecord | None:
        """The settled step of this number, or None when it has not been made."""
        name = self._names.get(index)
        if name is None:
            return None
        if index not in self._steps:
            record = self.store.read(self._key(index, name), StepRecord.from_record)
            if record is not None:
                self._steps[index] = record
        return self._steps.get(index)

    def recording(
        self, index: int, name: str, event: Event, state: WorkflowState, journal: StateJournal
    ) -> tuple[dict[str, Any], list[str]]:
        """What to write and what to delete when a step has been made: its own record, or a base for it and all before it."""
        if index + 1 - self.first < FOLD_AFTER:
            self._names[index] = name
            return {self._key(index, name): StepRecord(event, journal.change(state)).to_record()}, self._some_leftovers()
        self._base = Base(index + 1, event, journal.whole(state))
        self._names.clear()
        self._leftovers.extend(key for key in self.store.record_keys if self._is_folded(key))
        return {base_key(self.store.control.run_id): self._base.to_record()}, self._some_leftovers()

    def _some_leftovers(self) -> list[str]:
        return [self._leftovers.popleft() for _ in range(min(FOLD_AFTER, len(self._leftovers)))]

    def _note(self, key: str) -> None:
        place = self._place(key)
        if place is None:
            return
        if place.index < self.first:
            self._leftovers.append(key)
        elif place.is_step:
            self._names[place.index] = place.name

    def _is_folded(self, key: str) -> bool:
        place = self._place(key)
        return place is not None and place.index < self.first

    def _place(self, key: str) -> _Place | None:
        if not key.startswith(self._prefix) or key.startswith(f"{self._prefix}__"):
            return None
        step_id, memo, _ = key.removeprefix(self._prefix).partition("::")
        name, _, number = step_id.rpartition("-")
        return _Place(int(number), name, is_step=not memo) if number.isdecimal() else None

    def _key(self, index: int, name: str) -> str:
        return f"{self._prefix}{name}-{index}"
