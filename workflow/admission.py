"""How a call gets hold of a run: the reads and fenced writes around the decisions of `workflow.lifecycle`.

Everything here blocks on the store and runs no node. When a path is returned this process owns the run; otherwise what the
store holds is the answer.
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workflow import lifecycle
from workflow.control import Control
from workflow.errors import RunStalledError, StaleRunError, WorkflowError
from workflow.events import Event
from workflow.history import Happened, Told, waiting
from workflow.ids import new_run_id, new_writer
from workflow.index import HINT_DELAY
from workflow.path import RecordedPath
from workflow.records import Failure, Ignition, failure_key
from workflow.requests import ExecutionRequest
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["Shown", "Start", "admit", "record_answer", "record_start"]


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
    history: bool = False
    max_takeovers: int | None = None


def admit(store: RunStore, request: ExecutionRequest, start: Start) -> RecordedPath | Shown:
    """Take the run that the request is for and return its path so far, or say what to show instead; otherwise a refusal."""
    if request.kind != "start":
        return _continue(store, request, start)
    ignition = _ignition(store, request, start)
    found = _place(store, request, Control.started(ignition.run_id, new_writer(), store.lease()), ignition)
    return RecordedPath(store) if found is None else _continue(store, found, start)


def record_start(store: RunStore, request: ExecutionRequest, start: Start) -> str:
    """Record a start without executing it, and return the run id."""
    ignition = _ignition(store, request, start)
    _place(store, request, Control.pending(ignition.run_id, new_writer()), ignition)
    return ignition.run_id


def record_answer(store: RunStore, request: ExecutionRequest) -> bool:
    """Record the answer that a request brings, without executing: the run is due at once for whoever continues it.

    False when this very answer has been accepted before. Refuses what `admit` would refuse.
    """
    if request.kind == "start":
        raise WorkflowError("a start brings no answer: deliver a resume(payload) or a signal()")
    while True:
        control = store.load()
        answered = lifecycle.accept(store.workflow_id, control, request, store.moment(), writer=new_writer())
        if answered is None:
            return False
        store.recall_step()
        # Whoever loses the fence here looks again: a timer or another answer was faster, or the run has only moved.
        if store.replace(answered, Told(Happened.ANSWERED), wake=store.now() + HINT_DELAY):
            return True


def _ignition(store: RunStore, request: ExecutionRequest, start: Start) -> Ignition:
    run_id = request.run_id or new_run_id()
    history = store.now() if start.history else None
    position = store.bus_position() if store.bus_position else None
    return Ignition(run_id, request.event or start.event(), start.name, request.tag, start.version, history, position)


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
        store.delete(Told(Happened.ABANDONED))
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
        store.workflow_id,
        current,
        request,
        store.moment(),
        writer=new_writer(),
        lease=store.lease(),
        max_takeovers=start.max_takeovers,
    )
    match decision:
        case lifecycle.ServeOutcome():
            return Shown.OUTCOME
        case lifecycle.IdlePoll(settled=None):
            return Shown.WAITING
        case lifecycle.IdlePoll(settled=Control() as settled):
            _take(store, settled, waiting(settled))
            return Shown.WAITING
        case lifecycle.Park(control=parked):
            raise _park(store, parked)
        case lifecycle.Claim(control=claimed):
            path = RecordedPath(store)
            start.check(path)
            _take(store, claimed, Told(Happened.CLAIMED))
            return path
        case _:
            raise AssertionError(f"unknown decision {decision!r}")


def _park(store: RunStore, parked: Control) -> RunStalledError:
    """Write that the run stands still, and return what says so."""
    message = f"{store.control.trials.takeovers + 1} workers were lost with it, without a committed step between"
    stalled = RunStalledError(f"workflow {store.workflow_id!r}: {message}: look into it, then continue the run with resume()")
    failure = Failure(type(stalled).__qualname__, message, store.moment())
    told = Told(Happened.STALLED, error=failure.error, message=message)
    _take(store, parked, told, {failure_key(parked.run_id): failure.to_record()})
    return stalled


def _take(store: RunStore, control: Control, told: Told, records: Mapping[str, Any] | None = None) -> None:
    """Write the claim. Whoever loses it learns whether the run was replaced or only taken over."""
    if store.replace(control, told, records=records):
        return
    current = store.load()
    if current is None or current.run_id != control.run_id:
        raise StaleRunError(store.workflow_id, control.run_id, current.run_id if current else None)
    if current.status is WorkflowStatus.CANCELLED:
        raise lifecycle.cancelled(store.workflow_id)
    raise lifecycle.stale_attempt(store.workflow_id, "continue the run")
