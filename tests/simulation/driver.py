"""Whoever brings a run to its end from outside: people who answer, a scheduler that wakes it, somebody who restarts it."""

import enum
from collections.abc import Callable
from typing import Any

from tests.simulation.scheduler import Crash
from tests.simulation.universe import ID, LEASE, Call, Process, Universe
from workflow import ExecutionRequest, WaitForEventRequest, WorkflowRunSnapshot, WorkflowStatus
from workflow.ids import check_run_id

__all__ = ["RESERVED", "Recovery", "drive", "next_call", "recover"]

PATIENCE = 60
"""Calls after which a run counts as stuck."""
RESERVED = check_run_id("reserved-1")
S = WorkflowStatus


class Recovery(enum.Enum):
    """How a run that failed, or whose process died, is gone on with."""

    RUN = "run()"
    RESUME = "resume()"
    RESERVED = "start(run_id=…, recover_failed=True)"


def recover(process: Process, recovery: Recovery) -> Call:
    """Start the run, or go on with it."""
    match recovery:
        case Recovery.RUN:
            return process.call("start", process.workflow.run)
        case Recovery.RESERVED:
            request = ExecutionRequest.start(run_id=RESERVED, recover_failed=True)
            return process.call("start", lambda: process.workflow.run(request))
        case Recovery.RESUME:
            return process.call("resume", lambda: process.workflow.run(ExecutionRequest.resume()))


def next_call(process: Process, seen: WorkflowRunSnapshot, recovery: Recovery) -> Call:
    """What an attentive outside does about a run that it has just looked at."""
    if seen.status is S.SUSPENDED and isinstance(seen.interrupt, WaitForEventRequest):
        return answer(process, seen, {"by": process.name, "price": 7})
    if seen.status is S.COMPLETED or seen.status is S.CANCELLED:
        return process.call("acknowledge", lambda: process.engine.acknowledge(seen.workflow_id, seen.run_id))
    if seen.status in (S.PENDING, S.SUSPENDED):
        return process.call("resume", lambda: process.workflow.run(ExecutionRequest.resume(expected_run_id=seen.run_id)))
    return recover(process, recovery)


def answer(process: Process, seen: WorkflowRunSnapshot, payload: Any) -> Call:
    """Answer the interruption that was seen, and no other."""
    assert seen.interrupt is not None
    request = ExecutionRequest.resume(
        payload,
        expected_run_id=seen.run_id,
        expected_execution_attempt=seen.execution_attempt,
        expected_interrupt_id=seen.interrupt.id,
    )
    return process.call("resume", lambda: process.workflow.run(request))


def drive(universe: Universe, recovery: Recovery, *, keep_outcome: bool = False) -> None:
    """Bring the run to its end, each call in a process of its own. Whoever dies on the way is replaced by the next.

    Where a rule is broken already, nothing more would be learned.
    """
    for _ in range(PATIENCE):
        if universe.ledger.violations:
            return
        process = universe.process()
        try:
            if _drive_on(process, recovery, keep_outcome):
                return
        except Crash:
            continue
    universe.ledger.blame(f"the run is stuck: {universe.ledger.control(ID)}")


def _drive_on(process: Process, recovery: Recovery, keep_outcome: bool) -> bool:
    """One call. Whether the run has come to its end."""
    seen = _look(process)
    if seen is None and process.universe.ledger.ended:
        return True
    if seen is None:
        first = recovery if recovery is Recovery.RESERVED else Recovery.RUN
        recover(process, first)
        return False
    if seen.status is S.COMPLETED and keep_outcome:
        return True
    _let_time_pass(process, seen)
    next_call(process, seen, recovery)
    return False


def _look(process: Process) -> WorkflowRunSnapshot | None:
    call: Callable[[], Any] = process.workflow.inspect
    return process.call("inspect", call).value


def _let_time_pass(process: Process, seen: WorkflowRunSnapshot) -> None:
    """The lease of a dead process ends, a timer comes."""
    if seen.status in (S.RUNNING, S.CANCELLED):
        process.universe.advance(LEASE + 1)
    elif seen.status is S.SUSPENDED and seen.interrupt is not None and not isinstance(seen.interrupt, WaitForEventRequest):
        assert seen.interrupt.deadline is not None
        process.universe.advance((seen.interrupt.deadline - process.clock.now()).total_seconds())
