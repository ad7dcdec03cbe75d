"""Ending a lease early: for whoever knows that the process which held it is dead, or gives it up.

The write is fenced, and names the attempt: a segment that has ended meanwhile, or that somebody else has begun since, is left
alone. The run is due at once, and its old owner can write nothing more.
"""

from dataclasses import replace

from persistence import Persistence
from workflow.clock import Clock, SystemClock
from workflow.control import Control
from workflow.ids import check_workflow_id, new_writer
from workflow.index import RunSummary
from workflow.json_codec import JsonSerializer
from workflow.serializer import Serializer
from workflow.status import WorkflowStatus
from workflow.store import RunStore

__all__ = ["expire_lease"]


def expire_lease(
    persistence: Persistence,
    workflow_id: str,
    run_id: str,
    attempt: int,
    *,
    given_back: bool = False,
    serializer: Serializer | None = None,
    clock: Clock | None = None,
) -> bool:
    """End the lease of this attempt now. False when the attempt is over, holds no live lease, or ends at this moment.

    With ``given_back`` the takeover that follows does not count towards ``max_takeovers``: nobody was lost with the run.
    Raises `persistence.PersistenceError` when the store fails; then the lease ends by itself.
    """
    store = RunStore(persistence, serializer or JsonSerializer(), check_workflow_id(workflow_id), clock or SystemClock())
    control, now = store.load(), int(store.now())
    if control is None or not _held(control, run_id, attempt, now):
        return False
    entry = persistence.entry(workflow_id)
    if entry is not None:
        store.step = RunSummary.of(entry).step
    trials = control.trials.without_next_takeover() if given_back else control.trials
    return store.replace(replace(control, writer=new_writer(), commit=0, lease_expires_at=now, trials=trials))


def _held(control: Control, run_id: str, attempt: int, now: int) -> bool:
    same = (control.run_id, control.attempt) == (run_id, attempt)
    return same and control.status is WorkflowStatus.RUNNING and control.lease_is_live(now)
