"""How a call gets hold of a run: the reads and fenced writes around the decisions of `workflow.lifecycle`.

Everything here blocks on the store and runs no node. When a path is returned this process owns the run; otherwise what the
store holds is the answer.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from workflow import lifecycle
from workflow.control import Control
from workflow.errors import StaleRunError
from workflow.events import Event
from workflow.ids import new_run_id, new_writer
from workflow.path import RecordedPath
from workflow.records import Ignition
from workflow.requests import ExecutionRequest
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["Shown", "Start", "admit", "record_start"]


class Shown(enum.Enum):
    """What a call shows when there is nothing to execute."""

    OUTCOME = "outcome"
    """The retained outcome."""
    WAITING = "waiting"
    """The suspended run."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a new run of a definition begins with, and what a continuation of an old one must pass before its claim."""

    event: Callable[[], Event]
    name: str
    version: str | None
    check: Callable[[RecordedPath], None]


def admit(store: RunStore, request: ExecutionRequest, start: Start) -> RecordedPath | Shown:
    """Take the run that the request is for and return its path so far, or say what to show instead; otherwise a refusal."""
    if request.kind != "start":
        return _continue(store, request, start)
    ignition = _ignition(request, start)
    found = _place(store, request, Control.started(ignition.run_id, new_writer(), store.lease()), ignition)
    return RecordedPath(store) if found is None else _continue(store, found, start)


def record_start(store: RunStore, request: ExecutionRequest, start: Start) -> str:
    """Record a start without executing it, and return the run id."""
    ignition = _ignition(request, start)
    _place(store, request, Control.pending(ignition.run_id, new_writer()), ignition)
    return ignition.run_id


def _ignition(request: ExecutionRequest, start: Start) -> Ignition:
    run_id = request.run_id or new_run_id()
    return Ignition(run_id, request.event or start.event(), start.name, request.tag, start.version)


def _place(store: RunStore, request: ExecutionRequest, control: Control, ignition: Ignition) -> ExecutionRequest | None:
    """Create the run. Returns the request by which to continue a run that was met instead, or None when the new one stands."""
    if store.ignite(control, ignition):
        return None
    current = store.load()
    if current is not None:
        decision = lifecycle.meet(store.workflow_id, current, request, int(store.now()))
        if isinstance(decision, lifecycle.Recover):
            return ExecutionRequest.resume(expected_run_id=decision.run_id, expected_execution_attempt=decision.attempt)
        # A delete that loses was beaten by another start or by a recovery: the create below finds out.
        store.delete()
    elif request.run_id is not None:
        raise lifecycle.conflict(store.workflow_id)
    if store.ignite(control, ignition):
        return None
    winner = store.load()
    if winner is None:
        raise lifecycle.conflict(store.workflow_id)
    raise lifecycle.run_in_flight(store.workflow_id, winner, request, int(store.now()))


def _continue(store: RunStore, request: ExecutionRequest, start: Start) -> RecordedPath | Shown:
    current = store.load()
    decision = lifecycle.continue_run(
        store.workflow_id, current, request, store.moment(), writer=new_writer(), lease=store.lease()
    )
    match decision:
        case lifecycle.ServeOutcome():
            return Shown.OUTCOME
        case lifecycle.IdlePoll(settled=None):
            return Shown.WAITING
        case lifecycle.IdlePoll(settled=Control() as settled):
            _take(store, settled)
            return Shown.WAITING
        case lifecycle.Claim(control=claimed):
            path = RecordedPath(store)
            start.check(path)
            _take(store, claimed)
            return path
        case _:
            raise AssertionError(f"unknown decision {decision!r}")


def _take(store: RunStore, control: Control) -> None:
    """Write the claim. Whoever loses it learns whether the run was replaced or only taken over."""
    if store.replace(control):
        return
    current = store.load()
    if current is None or current.run_id != control.run_id:
        raise StaleRunError(store.workflow_id, control.run_id, current.run_id if current else None)
    if current.status is WorkflowStatus.CANCELLED:
        raise lifecycle.cancelled(store.workflow_id)
    raise lifecycle.stale_attempt(store.workflow_id, "continue the run")
