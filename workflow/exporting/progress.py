"""How far a run has come, by the names of its steps: for the colours of a picture. Reading it writes nothing."""

import enum
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from workflow.control import Control
from workflow.events import Event, StopEvent
from workflow.parallel import ParallelEvent
from workflow.path import RecordedPath
from workflow.status import WorkflowStatus

if TYPE_CHECKING:
    from workflow.definition import Workflow

__all__ = ["Mark", "Progress", "read_progress"]


class Mark(enum.Enum):
    """How a step stands. A step that is made again is marked by where it stands now."""

    DONE = "done"
    CURRENT = "current"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """Names of steps: those that are done, those at which the run is, and those at which it was when it failed."""

    done: AbstractSet[str] = field(default_factory=frozenset[str])
    current: AbstractSet[str] = field(default_factory=frozenset[str])
    failed: AbstractSet[str] = field(default_factory=frozenset[str])

    def mark(self, step: str | None) -> Mark | None:
        """The mark of a step; None for one that has not been reached."""
        if step in self.failed:
            return Mark.FAILED
        if step in self.current:
            return Mark.CURRENT
        return Mark.DONE if step in self.done else None


def read_progress(workflow: "Workflow[Any]") -> Progress | None:
    """The progress of a bound workflow's run, None when there is no run.

    Of steps that were folded into one record the names are not known any more. A run that failed with several branches open
    does not say in which: the next step of each is marked, unless it waits.
    """
    store = workflow.prepare(None).store
    control = store.load()
    if control is None:
        return None
    reading = _Reading(workflow.picture().steps)
    reading.follow(RecordedPath(store))
    return _progress(control, frozenset(reading.done), reading.ahead)


def _progress(control: Control, done: frozenset[str], ahead: Mapping[str, str]) -> Progress:
    """What the control record says of the steps that come next, whose names are given by their ids."""
    waiting = {control.interrupt.step_id if control.interrupt else None, *control.pending_steps}
    waits = frozenset(name for step_id, name in ahead.items() if step_id in waiting)
    begun = frozenset(ahead.values())
    match control.status:
        case WorkflowStatus.RUNNING:
            return Progress(done, current=begun)
        case WorkflowStatus.SUSPENDED:
            return Progress(done, current=waits)
        case WorkflowStatus.FAILED:
            failed = frozenset(name for step_id, name in ahead.items() if step_id not in waiting)
            # An answered step that fails keeps its answer, so that the only step there is may be among those that wait.
            return Progress(done, current=waits, failed=failed) if failed else Progress(done, failed=begun)
        case WorkflowStatus.COMPLETED:
            # The write that settles a run carries its last step, which has no record of its own.
            return Progress(done | begun)
        case _:
            return Progress(done)


class _Reading:
    """Walks the recorded paths: notes the steps that are settled, and by its id the one that comes next on each open path."""

    def __init__(self, steps: Mapping[type[Event], str]) -> None:
        self._steps = steps
        self.done: set[str] = set()
        self.ahead: dict[str, str] = {}

    def follow(self, path: RecordedPath) -> bool:
        """Note one path and its branches. Whether it has come to its end."""
        index, event = path.first, path.first_event()
        joined = self._follow_branches(path, index, event)
        while (name := path.name_of(index)) is not None:
            self.done.add(name)
            record = path.step(index)
            index, event = index + 1, record.event if record else event
            joined = self._follow_branches(path, index, event)
        following = self._steps.get(type(event))
        if joined and following is not None:
            self.ahead[path.step_id(index, following)] = following
        return isinstance(event, StopEvent)

    def _follow_branches(self, path: RecordedPath, index: int, event: Event) -> bool:
        """Note the branches that an event opened, if it did. Whether all have ended."""
        branches = event.branches.items() if isinstance(event, ParallelEvent) else ()
        ended = [self.follow(path.branch(index - 1, name, begins)) for name, begins in branches]
        return all(ended)
