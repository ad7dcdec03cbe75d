"""The state that a settled run shows without executing anything: a retained outcome, or the checkpoint of a suspended run."""

from typing import Any, TypeVar

from workflow.errors import WorkflowError
from workflow.journal import apply_change
from workflow.records import Checkpoint, Outcome, checkpoint_key, outcome_key
from workflow.state import Execution, WorkflowState
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["execution_of", "outcome_state", "waiting_state"]

StateT = TypeVar("StateT", bound=WorkflowState)


def outcome_state(store: RunStore, seed: StateT) -> StateT:
    """The final state of a retained run. Raises `WorkflowError` when its outcome record is missing."""
    outcome = store.read(outcome_key(store.control.run_id), Outcome.from_record)
    if outcome is None:
        raise WorkflowError(f"workflow {store.workflow_id!r} is completed, but has no outcome record: restore it from a backup")
    return apply_change(seed, outcome.state).stamped(execution_of(store, WorkflowStatus.COMPLETED, outcome.result))


def waiting_state(store: RunStore, seed: StateT) -> StateT:
    """The state as it stood at the suspension, or the seed when the run never got so far."""
    checkpoint = store.read(checkpoint_key(store.control.run_id), Checkpoint.from_record)
    state = seed if checkpoint is None else apply_change(seed, checkpoint.state)
    return state.stamped(execution_of(store, WorkflowStatus.SUSPENDED))


def execution_of(store: RunStore, status: WorkflowStatus, result: Any = None) -> Execution:
    """What the engine knows of the run, to be shown with its state."""
    control, ignition = store.control, store.ignition
    waiting = control.interrupt.request if status is WorkflowStatus.SUSPENDED and control.interrupt else None
    return Execution(store.workflow_id, control.run_id, control.attempt, status, result, ignition.tag, waiting)
