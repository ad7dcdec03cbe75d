"""Which segments a process executes at this moment: what must be given back when it dies, or is told to go.

Told by the runs themselves, as one of their listeners.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from persistence import PersistenceError
from workers.composition import Runtime
from workflow import WorkflowError
from workflow.observing import Observation, WorkflowEnded, WorkflowStarted

__all__ = ["HeldSegment", "InHand", "give_back"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HeldSegment:
    """One execution: the attempt is the fence."""

    name: str
    workflow_id: str
    run_id: str
    attempt: int


Tell = Callable[[bool, HeldSegment], None]
"""Told of each segment that begins (true) or ends (false)."""


class InHand:
    """The segments of this process. A listener of all its runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[HeldSegment] = set()
        self._tell: Tell | None = None

    def __call__(self, observation: Observation) -> None:
        """See `workflow.observing.Listener`."""
        if not isinstance(observation, WorkflowStarted | WorkflowEnded):
            return
        ran = observation.execution
        begins = isinstance(observation, WorkflowStarted)
        segment = HeldSegment(ran.name, ran.workflow_id, ran.run_id, ran.attempt)
        with self._lock:
            (self._held.add if begins else self._held.discard)(segment)
        if self._tell is not None:
            self._tell(begins, segment)

    def held(self) -> set[HeldSegment]:
        """What is executed now."""
        with self._lock:
            return set(self._held)

    def become_child(self, tell: Tell) -> None:
        """In a forked child: what was in hand is the parent's, and the lock may never be freed."""
        self._lock = threading.Lock()
        self._held = set()
        self._tell = tell


def give_back(runtime: Runtime, segments: set[HeldSegment], why: str, *, lost: bool) -> None:
    """End the leases of these segments under the fence, and hint at their runs, so that other workers take them now.

    ``lost`` says that a worker died with them: a run with which that happens again and again is parked.
    A segment that has ended, or went to somebody else, is left alone. Trouble is logged: then its lease ends by itself.
    """
    given = [segment for segment in segments if _expired(runtime, segment, why, lost)]
    for segment in given:
        runtime.hints.send(segment.name, segment.workflow_id, segment.run_id)


def _expired(runtime: Runtime, segment: HeldSegment, why: str, lost: bool) -> bool:
    names = {"workflow_id": segment.workflow_id, "run_id": segment.run_id, "attempt": segment.attempt}
    try:
        engine = runtime.engine_of(segment.name, segment.workflow_id)
        expired = engine.expire(segment.workflow_id, segment.run_id, segment.attempt, given_back=not lost)
    except (PersistenceError, WorkflowError) as trouble:
        _log.warning("a lease could not be given back; it ends by itself", **names, trouble=str(trouble))
        return False
    if expired:
        _log.warning("lease given back", why=why, **names)
    return expired
