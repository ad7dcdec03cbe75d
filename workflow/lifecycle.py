"""What may happen to a run, decided on values alone: the control record, the request, the present second.

Every function returns a decision or raises a refusal; none reads or writes. They stand in the order of a run's life, and
are the tables of the engine's admission rules.
"""

import datetime as dt
from dataclasses import dataclass

from workflow.canonical import canonical_json
from workflow.control import AcceptedInput, ActiveInterrupt, Control
from workflow.errors import RefusalReason, RunInFlightError, StaleRunError, WorkflowError, WorkflowRefusedError
from workflow.interrupts import InputKind, InterruptType
from workflow.requests import ExecutionRequest
from workflow.status import WorkflowStatus

__all__ = [
    "Claim",
    "IdlePoll",
    "Park",
    "Recover",
    "ServeOutcome",
    "Supersede",
    "abandon",
    "accept",
    "acknowledge",
    "cancel",
    "cancelled",
    "continue_run",
    "meet",
    "run_in_flight",
    "stale_attempt",
]


@dataclass(frozen=True, slots=True)
class Supersede:
    """The run met is dead and may be deleted to make room for a new one."""


@dataclass(frozen=True, slots=True)
class Recover:
    """A start met its own kind of run and continues it, fenced by what was just observed."""

    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class ServeOutcome:
    """The run is completed and retained: hand out its outcome, run nothing, write nothing."""


@dataclass(frozen=True, slots=True)
class IdlePoll:
    """The run waits and nothing has come: show it. ``settled`` is what to write first, if anything."""

    settled: Control | None


@dataclass(frozen=True, slots=True)
class Park:
    """Worker after worker was lost with the run: write this control instead of losing one more."""

    control: Control


@dataclass(frozen=True, slots=True)
class Claim:
    """Take the run: write this control, then execute."""

    control: Control


# --- starting ---------------------------------------------------------------------------------------------------------------


def meet(workflow_id: str, current: Control, request: ExecutionRequest, now: int) -> Recover | Supersede:
    """What a start does about the run that holds its workflow id."""
    if current.status is WorkflowStatus.CANCELLED:
        raise cancelled(workflow_id)
    if request.recover_failed and _recoverable(current, request, now):
        return Recover(current.run_id, current.attempt)
    if request.run_id is None and current.is_dead(now):
        return Supersede()
    raise run_in_flight(workflow_id, current, request, now)


def _recoverable(current: Control, request: ExecutionRequest, now: int) -> bool:
    """Whether a start that recovers may continue this run.

    Without a reserved run id only a failed run is: a plain start supersedes a run whose worker died. With one, its own run is,
    dead or still pending.
    """
    if request.run_id is None:
        return current.status is WorkflowStatus.FAILED
    return current.run_id == request.run_id and (current.is_dead(now) or current.status is WorkflowStatus.PENDING)


def run_in_flight(workflow_id: str, current: Control, request: ExecutionRequest, now: int) -> RunInFlightError:
    """The refusal of a start, naming the verb that settles the run in the way."""
    whose = "your run" if request.run_id == current.run_id else "run"
    held = f"workflow {workflow_id!r} is held by {whose} {current.run_id!r}"
    return RunInFlightError(
        f"{held}, {_how_to_settle(current, now)}",
        workflow_id=workflow_id,
        run_id=current.run_id,
        status=current.status,
        execution_attempt=current.attempt,
        lease_expires_at=current.lease_end,
        interrupt=current.interrupt.request if current.interrupt else None,
    )


def _how_to_settle(current: Control, now: int) -> str:
    match current.status:
        case WorkflowStatus.PENDING:
            return "which is recorded but not begun: continue it with resume(), or abandon() it"
        case WorkflowStatus.COMPLETED:
            return "which is completed and retained: acknowledge() it first"
        case WorkflowStatus.SUSPENDED if current.interrupt is not None and current.interrupt.is_known:
            return f"which waits for {_shown(current.interrupt)}: answer it with signal() or resume(payload), or abandon() it"
        case WorkflowStatus.SUSPENDED:
            return "which is suspended: answer it with signal() or resume(payload), or abandon() it"
        case WorkflowStatus.RUNNING if current.lease_is_live(now):
            return f"which is running until its lease ends at {current.lease_end}: wait, then try again"
        case WorkflowStatus.RUNNING if current.lease_expires_at is None:
            return "which is running without a lease: if its process is dead, take it over with resume()"
        case _:
            return "which is dead, but changed meanwhile or belongs to another start: try again, or continue it with resume()"


def _shown(active: ActiveInterrupt) -> str:
    request = active.request
    name = f" {request.awaited_event!r}" if request.awaited_event is not None else ""
    deadline = f" until {request.deadline.isoformat()}" if request.deadline else ""
    return f"#{request.id} {request.type.value}{name}{deadline}"


# --- continuing -------------------------------------------------------------------------------------------------------------


def continue_run(
    workflow_id: str,
    current: Control | None,
    request: ExecutionRequest,
    now: dt.datetime,
    *,
    writer: str,
    lease: int | None,
    max_takeovers: int | None = None,
) -> ServeOutcome | IdlePoll | Park | Claim:
    """What a resume, a signal or a recovery does with the current run. The order of the checks is part of the rules."""
    control = _expected(workflow_id, current, request.run_id, request.expected_attempt)
    if control.status is WorkflowStatus.CANCELLED:
        raise cancelled(workflow_id)
    if control.status is WorkflowStatus.COMPLETED:
        if request.signal_name is not None:
            raise _refused(RefusalReason.NOT_AWAITED, workflow_id, "its run is completed and waits for nothing")
        return ServeOutcome()
    _check_known(workflow_id, control)
    accepted = _input(workflow_id, control, request, now)
    if accepted is not None and control.interrupt is not None:
        control = _accept(workflow_id, control, control.interrupt, accepted, now)
    if control.awaits_input:
        return IdlePoll(_settled(control, writer))
    if control.status is WorkflowStatus.RUNNING and max_takeovers is not None and control.trials.takeovers >= max_takeovers:
        return Park(control.parked(writer))
    return Claim(control.claimed(writer, lease))


def accept(
    workflow_id: str, current: Control | None, request: ExecutionRequest, now: dt.datetime, *, writer: str
) -> Control | None:
    """The control that holds the answer which a request brings, for somebody else to continue the run with.

    The same answers are taken and refused as by `continue_run`. None when this very answer has been accepted before.
    """
    control = _expected(workflow_id, current, request.run_id, request.expected_attempt)
    if control.status is WorkflowStatus.CANCELLED:
        raise cancelled(workflow_id)
    if control.status is WorkflowStatus.COMPLETED:
        raise _refused(RefusalReason.NOT_AWAITED, workflow_id, "its run is completed and waits for nothing")
    _check_known(workflow_id, control)
    accepted = _input(workflow_id, control, request, now)
    if accepted is None or control.interrupt is None:
        raise WorkflowError(
            f"workflow {workflow_id!r}: the request brings no answer to deliver: use resume(payload) or signal()"
        )
    answered = _accept(workflow_id, control, control.interrupt, accepted, now)
    return None if answered is control else answered.delivered(writer)


def _check_known(workflow_id: str, control: Control) -> None:
    if control.interrupt is not None and not control.interrupt.is_known:
        raise WorkflowError(
            f"workflow {workflow_id!r} waits for {control.interrupt.request!r}, whose class is not defined in this program: "
            "import the module that defines it"
        )


def _input(workflow_id: str, control: Control, request: ExecutionRequest, now: dt.datetime) -> AcceptedInput | None:
    """The answer that the request brings, or that the time brings by itself."""
    _check_interrupt(workflow_id, control, request)
    if request.has_payload:
        if control.interrupt is None:
            raise _refused(RefusalReason.NOT_AWAITED, workflow_id, "its run waits for no answer")
        if control.status not in (WorkflowStatus.SUSPENDED, WorkflowStatus.FAILED):
            raise _executing(workflow_id, control)
        return AcceptedInput(InputKind.EVENT, request.payload, request.position)
    if control.status is WorkflowStatus.RUNNING and control.lease_is_live(int(now.timestamp())):
        raise _executing(workflow_id, control)
    return _due_input(control, now)


def _check_interrupt(workflow_id: str, control: Control, request: ExecutionRequest) -> None:
    current = control.interrupt.request if control.interrupt else None
    if request.signal_name is not None and (current is None or current.awaited_event != request.signal_name):
        raise _refused(RefusalReason.NOT_AWAITED, workflow_id, f"its run does not wait for the event {request.signal_name!r}")
    if request.expected_interrupt_id is not None and (current is None or current.id != request.expected_interrupt_id):
        asked = f"interruption #{request.expected_interrupt_id}"
        raise _refused(RefusalReason.NOT_AWAITED, workflow_id, f"its run does not wait for {asked} (any more)")


def _due_input(control: Control, now: dt.datetime) -> AcceptedInput | None:
    """The timer or the deadline that has come, for the current interruption only, and only while it has no answer."""
    if control.interrupt is None or control.interrupt.input is not None:
        return None
    deadline = control.interrupt.request.deadline
    if deadline is None or int(deadline.timestamp()) > int(now.timestamp()):
        return None
    sleeping = control.interrupt.request.type is InterruptType.SLEEP_UNTIL
    return AcceptedInput(InputKind.TIMER if sleeping else InputKind.EXPIRED)


def _accept(workflow_id: str, control: Control, active: ActiveInterrupt, accepted: AcceptedInput, now: dt.datetime) -> Control:
    """Attach the answer. One that is accepted is immutable: the same again changes nothing, another is refused."""
    held = active.input
    if held is not None:
        if held.kind is accepted.kind and canonical_json(held.payload) == canonical_json(accepted.payload):
            return control
        raise _refused(RefusalReason.NOT_AWAITED, workflow_id, "its run already has an accepted input, which cannot be changed")
    try:
        active.request.validate_input(accepted.kind, accepted.payload, now)
    except ValueError as trouble:
        raise _refused(RefusalReason.NOT_AWAITED, workflow_id, str(trouble)) from trouble
    return control.with_input(active, accepted)


def _settled(control: Control, writer: str) -> Control | None:
    """A suspended run is shown as it is; a failed or dead one that waits becomes suspended, under a new attempt."""
    if control.status is WorkflowStatus.SUSPENDED:
        return None
    return control.claimed(writer, None).suspended()


# --- ending from outside ----------------------------------------------------------------------------------------------------


def abandon(workflow_id: str, current: Control | None, run_id: str | None, attempt: int | None, now: int) -> bool:
    """Whether there is a run to discard: one that nobody executes. False when there is none and none was named."""
    if current is None and run_id is None:
        return False
    control = _expected(workflow_id, current, run_id, attempt)
    if control.status is WorkflowStatus.COMPLETED:
        raise _refused(RefusalReason.COMPLETED, workflow_id, "its run is completed and retained: acknowledge() it instead")
    if control.lease_is_live(now):
        raise _executing(workflow_id, control)
    return True


def cancel(
    workflow_id: str, current: Control | None, run_id: str | None, now: int, *, retain: bool, writer: str
) -> Control | None:
    """The control that ends a run from outside, or None when there is nothing to do: no run, or cancelled already.

    A retained cancellation holds no lease: it stays until acknowledged. Otherwise the last lease is kept until it ends, for
    until then the run's owner may still be busy. Of an owner without a lease nothing is known: its run may go at once.
    """
    if current is None and run_id is None:
        return None
    control = _expected(workflow_id, current, run_id, None)
    if control.status is WorkflowStatus.COMPLETED:
        raise _refused(RefusalReason.COMPLETED, workflow_id, "its run is completed and retained: acknowledge() it instead")
    if control.status is WorkflowStatus.CANCELLED:
        return None
    lease = now if control.lease_expires_at is None else control.lease_expires_at
    return control.cancelled(writer, lease=None if retain else lease)


def acknowledge(workflow_id: str, current: Control | None, run_id: str, now: int) -> None:
    """Refuses unless this run is completed (or cancelled) and may be forgotten."""
    control = _expected(workflow_id, current, run_id, None)
    if control.status not in (WorkflowStatus.COMPLETED, WorkflowStatus.CANCELLED):
        raise _refused(RefusalReason.NOT_COMPLETED, workflow_id, f"its run is {control.status.value}, not completed")
    if control.lease_is_live(now):
        raise _executing(workflow_id, control)


# --- refusals shared above --------------------------------------------------------------------------------------------------


def stale_attempt(workflow_id: str, verb: str) -> WorkflowRefusedError:
    """A segment met a newer owner of its run: it cannot ``verb`` any more."""
    message = f"cannot {verb}: another process has taken the run over or ended it"
    return _refused(RefusalReason.STALE_ATTEMPT, workflow_id, message)


def cancelled(workflow_id: str) -> WorkflowRefusedError:
    """The run has been ended from outside."""
    return _refused(RefusalReason.CANCELLED, workflow_id, "its run is cancelled: acknowledge() it, then start anew")


def conflict(workflow_id: str) -> WorkflowRefusedError:
    """A change from outside lost a race."""
    return _refused(RefusalReason.CONFLICT, workflow_id, "its run changed at the same moment: try again")


def _expected(workflow_id: str, current: Control | None, run_id: str | None, attempt: int | None) -> Control:
    if current is None:
        if run_id is not None:
            raise StaleRunError(workflow_id, run_id, None)
        raise _refused(RefusalReason.NO_RUN, workflow_id, "it has no run in flight: start one")
    if run_id is not None and current.run_id != run_id:
        raise StaleRunError(workflow_id, run_id, current.run_id)
    if attempt is not None and current.attempt != attempt:
        raise _refused(
            RefusalReason.STALE_ATTEMPT,
            workflow_id,
            f"its run is at attempt {current.attempt}, not {attempt}: look at it again",
        )
    return current


def _executing(workflow_id: str, control: Control) -> WorkflowRefusedError:
    lease = f" until {control.lease_end}" if control.lease_end else ""
    message = f"its run is {control.status.value}{lease}: wait, or continue it with resume() once its lease has ended"
    return _refused(RefusalReason.EXECUTING, workflow_id, message)


def _refused(reason: RefusalReason, workflow_id: str, message: str) -> WorkflowRefusedError:
    return WorkflowRefusedError(reason, f"workflow {workflow_id!r}: {message}")
