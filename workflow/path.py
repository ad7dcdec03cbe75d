"""The settled steps of a run's path, as its records hold them, and how they are folded.

A long run would keep a record for every step that it ever made. When 256 settled steps have come together they are folded into
one base record, and their records and memos go; what one write may not delete goes with the next ones. So a run of ten thousand
steps resumes about as fast as one of ten.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workflow.errors import WorkflowError
from workflow.events import Event
from workflow.journal import StateJournal
from workflow.records import Base, StateChange, StepRecord, base_key, branch_prefix, step_key
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
    """One path of a run: the main one, or that of a branch, which ``begins`` with an event and prefixes its step ids.

    Reads what its store has loaded, each record once; asks for nothing more.
    """

    def __init__(self, store: RunStore, prefix: str = "", begins: Event | None = None, position: str | None = None) -> None:
        self.store = store
        self._begins = begins
        self._begins_at = position
        self._latest: tuple[int, str | None] | None = None
        """The step made last in this segment, and where the bus stood then; a fork is made when its branches have met."""
        self._ends: defaultdict[int, list[str]] = defaultdict(list)
        """By fork, where the bus stood at the end of each branch that has ended."""
        self._steps: dict[int, StepRecord] = {}
        self._ids = prefix
        self._prefix = step_key(store.control.run_id, prefix)
        self._base_key = base_key(store.control.run_id, prefix)
        self._base = store.read(self._base_key, Base.from_record)
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
        if self._begins is not None:
            return self._begins
        event = self.store.ignition.start_event
        if not isinstance(event, Event):
            raise WorkflowError(f"the start event {event!r} is not defined in this program: import the module that defines it")
        return event

    def step_id(self, index: int, name: str) -> str:
        """What a step of this path is called in records."""
        return f"{self._ids}{name}-{index}"

    def holds(self, step_id: str) -> bool:
        """Whether a step id belongs to this very path, not to a branch of it."""
        return step_id.startswith(self._ids) and "/" not in step_id.removeprefix(self._ids)

    def branch(self, fork: int, name: str, begins: Event) -> "RecordedPath":
        """The path of a branch of the fork that the step of this number returned; -1 is a fork that the path begins with."""
        return RecordedPath(self.store, branch_prefix(self._ids, fork, name), begins, self.position(fork + 1))

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

    def position(self, index: int) -> str | None:
        """Where the bus stood before the step of this number was first begun, if somebody was there to say so."""
        if self._latest is not None and self._latest[0] == index - 1:
            return self._latest[1]
        if index > self.first:
            before = self.step(index - 1)
            return None if before is None else before.position
        if self._base is not None:
            return self._base.position
        return self.store.ignition.position if self._begins is None else self._begins_at

    def branch_ended(self, fork: int, branch: "RecordedPath") -> None:
        """A branch of this fork has come to its end."""
        position = branch.position(branch.length)
        if position is not None:
            self._ends[fork].append(position)

    def branches_met(self, fork: int, latest: Callable[[Sequence[str]], str]) -> None:
        """All branches of this fork have ended: the signals that they used are no news for the join."""
        own = self.position(fork + 1)
        ends = self._ends.pop(fork, [])
        if own is not None:
            self._latest = fork, latest([own, *ends])

    @property
    def length(self) -> int:
        """How many steps have been made."""
        made = self.first if not self._names else max(self._names) + 1
        return made if self._latest is None else max(made, self._latest[0] + 1)

    def recording(
        self, index: int, name: str, event: Event, state: WorkflowState, journal: StateJournal, position: str | None = None
    ) -> tuple[dict[str, Any], list[str]]:
        """What to write and what to delete when a step has been made: its own record, or a base for it and all before it.

        ``position`` is where the bus stands now.
        """
        self._latest = index, position
        if index + 1 - self.first < FOLD_AFTER:
            self._names[index] = name
            record = StepRecord(event, journal.change(state), position)
            return {self._key(index, name): record.to_record()}, self._some_leftovers()
        self._base = Base(index + 1, event, journal.whole(state), position)
        self._names.clear()
        self._leftovers.extend(key for key in self.store.record_keys if self._is_folded(key))
        return {self._base_key: self._base.to_record()}, self._some_leftovers()

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
        """Whether a record belongs to a step that is folded, or to a branch of one.

        Steps are folded when one has just been made: the branches of all forks before it have met, and if it returned a fork
        itself, none of its branches has begun.
        """
        if not key.startswith(self._prefix) or key == self._base_key:
            return False
        place = self._place(key)
        return "/" in key.removeprefix(self._prefix) if place is None else place.index < self.first

    def _place(self, key: str) -> _Place | None:
        if not key.startswith(self._prefix) or key.startswith(f"{self._prefix}__"):
            return None
        step_id, memo, _ = key.removeprefix(self._prefix).partition("::")
        if "/" in step_id:
            return None
        name, _, number = step_id.rpartition("-")
        return _Place(int(number), name, is_step=not memo) if number.isdecimal() else None

    def _key(self, index: int, name: str) -> str:
        return f"{self._prefix}{name}-{index}"
