"""The control record: the small value that says where a run stands. Its exact bytes are the fence of every write.

It carries a commit counter and the random token of its writer, fresh for every claim and every transition from outside, so that
no two writers ever produce the same bytes. Transitions return a new value.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from workflow.interrupts import InputKind, InterruptRequest, UnknownRequest
from workflow.status import WorkflowStatus
from workflow.trials import NO_TRIALS, Trials

__all__ = ["AcceptedInput", "ActiveInterrupt", "Control", "interrupt_of", "interrupt_record"]

VERSION = 1
"""Version of the stored shape."""


@dataclass(frozen=True, slots=True)
class AcceptedInput:
    """The answer that ends a wait, once accepted immutable. ``payload`` is a JSON value; None for timers and deadlines."""

    kind: InputKind
    payload: Any = None
    position: str | None = None
    """Where on the bus the event stood, if it came from there."""


@dataclass(frozen=True, slots=True)
class ActiveInterrupt:
    """The one request that callers see. ``step_id`` and ``wait`` say which wait of which step asked."""

    request: InterruptRequest
    step_id: str
    wait: str
    input: AcceptedInput | None = None

    @property
    def is_known(self) -> bool:
        """Whether this program defines the class of the request. One that it does not can be shown and discarded only."""
        request: Any = self.request
        return isinstance(request, InterruptRequest)


@dataclass(frozen=True, slots=True)
class Control:
    """Where a run stands. ``lease_expires_at`` is in whole Unix seconds."""

    run_id: str
    status: WorkflowStatus
    attempt: int
    writer: str
    commit: int = 0
    lease_expires_at: int | None = None
    next_interrupt_id: int = 1
    interrupt: ActiveInterrupt | None = None
    pending_steps: tuple[str, ...] = ()
    trials: Trials = NO_TRIALS

    @classmethod
    def pending(cls, run_id: str, writer: str) -> Self:
        """A run that is recorded but that nobody has begun to execute."""
        return cls(run_id, WorkflowStatus.PENDING, 0, writer)

    @classmethod
    def started(cls, run_id: str, writer: str, lease: int | None) -> Self:
        """A run whose first segment begins with its creation."""
        return cls(run_id, WorkflowStatus.RUNNING, 1, writer, lease_expires_at=lease)

    def claimed(self, writer: str, lease: int | None) -> Self:
        """A new segment begins: the next attempt, with interruption and answer kept. One still running is taken over."""
        return replace(
            self,
            status=WorkflowStatus.RUNNING,
            attempt=self.attempt + 1,
            writer=writer,
            commit=0,
            lease_expires_at=lease,
            trials=self.trials.with_takeover() if self.status is WorkflowStatus.RUNNING else self.trials,
        )

    def committed(self, lease: int | None) -> "Control":
        """One more write of the same segment, with its lease renewed."""
        return Control(
            self.run_id,
            self.status,
            self.attempt,
            self.writer,
            self.commit + 1,
            lease,
            self.next_interrupt_id,
            self.interrupt,
            self.pending_steps,
            self.trials,
        )

    def moved_on(self) -> Self:
        """A step is committed: what was tried before it counts no more."""
        return self if self.trials == NO_TRIALS else replace(self, trials=NO_TRIALS)

    def with_interrupt(self, reached: ActiveInterrupt) -> Self:
        """A wait was reached. It gets the next id, and becomes the current one, or waits behind it in order of arrival."""
        numbered = replace(reached, request=reached.request.with_id(self.next_interrupt_id))
        following = self.next_interrupt_id + 1
        if self.interrupt is None:
            return replace(self, interrupt=numbered, next_interrupt_id=following)
        return replace(self, pending_steps=(*self.pending_steps, reached.step_id), next_interrupt_id=following)

    def with_input(self, active: ActiveInterrupt, accepted: AcceptedInput) -> Self:
        """The current wait has its answer."""
        return replace(self, interrupt=replace(active, input=accepted))

    def delivered(self, writer: str) -> Self:
        """The same, written from outside a segment."""
        return replace(self, writer=writer, commit=0)

    def answered(self, following: ActiveInterrupt | None) -> Self:
        """The current wait is over; the oldest that waits behind it becomes the current one."""
        return replace(self, interrupt=following, pending_steps=self.pending_steps[1:] if following else ())

    def suspended(self) -> Self:
        """The segment ended in a wait, which holds no lease."""
        return replace(self, status=WorkflowStatus.SUSPENDED, lease_expires_at=None, trials=NO_TRIALS)

    def failed(self, trials: Trials = NO_TRIALS) -> Self:
        """The segment ended in an error; interruption and accepted answer are kept for the recovery.

        ``trials`` are kept where the run is tried again by itself; a person who tries it again begins anew.
        """
        return replace(self, status=WorkflowStatus.FAILED, lease_expires_at=None, trials=trials)

    def parked(self, writer: str) -> Self:
        """Too many workers were lost with the run: it stands still until a person has it tried again."""
        return replace(self.claimed(writer, None), status=WorkflowStatus.FAILED, trials=NO_TRIALS)

    def completed(self) -> Self:
        """The run ended well and is retained."""
        return replace(
            self,
            status=WorkflowStatus.COMPLETED,
            lease_expires_at=None,
            interrupt=None,
            pending_steps=(),
            trials=NO_TRIALS,
        )

    def cancelled(self, writer: str, lease: int | None) -> Self:
        """The run was ended from outside. It may be deleted when the given lease has ended; without one it is retained."""
        return replace(
            self,
            status=WorkflowStatus.CANCELLED,
            writer=writer,
            commit=0,
            lease_expires_at=lease,
            interrupt=None,
            pending_steps=(),
            trials=NO_TRIALS,
        )

    def is_cancelled(self, run_id: str) -> bool:
        """Whether this run was ended from outside."""
        return self.status is WorkflowStatus.CANCELLED and self.run_id == run_id

    def lease_is_live(self, now: int) -> bool:
        """Whether a worker holds the run at this whole second."""
        return self.lease_expires_at is not None and self.lease_expires_at > now

    def is_dead(self, now: int) -> bool:
        """Failed, or running with an expired lease. A running record without a lease is never dead."""
        expired = self.lease_expires_at is not None and self.lease_expires_at <= now
        return self.status is WorkflowStatus.FAILED or (self.status is WorkflowStatus.RUNNING and expired)

    @property
    def waiting_steps(self) -> tuple[str, ...]:
        """The steps whose nodes have reached a wait that is not over: the current one first, then those behind it."""
        return self.pending_steps if self.interrupt is None else (self.interrupt.step_id, *self.pending_steps)

    @property
    def awaits_input(self) -> bool:
        """Whether there is a current interruption without an answer."""
        return self.interrupt is not None and self.interrupt.input is None

    @property
    def lease_end(self) -> dt.datetime | None:
        """The end of the lease as an aware datetime."""
        return None if self.lease_expires_at is None else dt.datetime.fromtimestamp(self.lease_expires_at, dt.UTC)

    def to_record(self) -> dict[str, Any]:
        """The stored shape: JSON values and the request itself, for the codec. What is empty is left out: this is the fence."""
        record: dict[str, Any] = {
            "v": VERSION,
            "run": self.run_id,
            "status": self.status.value,
            "attempt": self.attempt,
            "writer": self.writer,
            "commit": self.commit,
            "nextInterrupt": self.next_interrupt_id,
        }
        if self.lease_expires_at is not None:
            record["lease"] = self.lease_expires_at
        if self.interrupt is not None:
            record["interrupt"] = interrupt_record(self.interrupt)
        if self.pending_steps:
            record["pendingSteps"] = list(self.pending_steps)
        if self.trials != NO_TRIALS:
            record["trials"] = self.trials.to_record()
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """The value behind a stored shape. Raises KeyError, TypeError or ValueError for any other shape."""
        if record["v"] != VERSION:
            raise ValueError(f"version {record['v']!r} of the control record is not known")
        lease, interrupt, trials = record.get("lease"), record.get("interrupt"), record.get("trials")
        return cls(
            run_id=_text(record["run"]),
            status=WorkflowStatus(record["status"]),
            attempt=_whole(record["attempt"]),
            writer=_text(record["writer"]),
            commit=_whole(record["commit"]),
            lease_expires_at=None if lease is None else _whole(lease),
            next_interrupt_id=_whole(record["nextInterrupt"]),
            interrupt=None if interrupt is None else interrupt_of(interrupt),
            pending_steps=tuple(_text(step) for step in record.get("pendingSteps", ())),
            trials=NO_TRIALS if trials is None else Trials.from_record(trials),
        )


def interrupt_record(active: ActiveInterrupt) -> dict[str, Any]:
    """The stored shape of an interruption: in control while it is the current one, beside its step while it is deferred."""
    request, accepted = active.request, active.input
    return {
        "v": VERSION,
        "id": request.id,
        "step": active.step_id,
        "wait": active.wait,
        "request": request.original if isinstance(request, UnknownRequest) else request,
        # What a program needs that does not define the request's class.
        "shown": request.to_json(),
        "ends": request.deadline,
        "input": accepted and _input_record(accepted),
    }


def _input_record(accepted: AcceptedInput) -> dict[str, Any]:
    record = {"kind": accepted.kind.value, "payload": accepted.payload}
    return record if accepted.position is None else {**record, "position": accepted.position}


def interrupt_of(record: Mapping[str, Any]) -> ActiveInterrupt:
    """The interruption behind a stored shape. Raises KeyError, TypeError or ValueError for any other shape."""
    if record["v"] != VERSION:
        raise ValueError(f"version {record['v']!r} of an interruption is not known")
    request, accepted = record["request"], record["input"]
    if not isinstance(request, InterruptRequest):
        request = UnknownRequest(original=request, shown=record["shown"], ends=record["ends"])
    return ActiveInterrupt(
        request=request.with_id(_whole(record["id"])),
        step_id=_text(record["step"]),
        wait=_text(record["wait"]),
        input=None if accepted is None else _input_of(accepted),
    )


def _input_of(record: Mapping[str, Any]) -> AcceptedInput:
    return AcceptedInput(InputKind(record["kind"]), record["payload"], record.get("position"))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {value!r}")
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a whole number expected, not {value!r}")
    return value
