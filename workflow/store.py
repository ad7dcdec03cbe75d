"""One run's partition as one process sees it: what was read, and writes that hold only while the run is still ours.

All writes of a segment go through one lock, so that nodes, branches and the lease renewer never race each other, and every
write says "if control still holds these bytes". Once a write has lost that condition the store is displaced: nothing more is
written.
"""

import datetime as dt
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from persistence import IndexEntry, Persistence, PersistenceError, UnreachableError
from workflow.clock import Clock
from workflow.control import Control
from workflow.errors import RefusalReason, UnreadableRecordError, WorkflowError, WorkflowRefusedError
from workflow.history import HISTORY_LOG, Happened, HistoryLine, Told, hides_nothing, write_line
from workflow.index import RunSummary, entry_of
from workflow.lifecycle import stale_attempt
from workflow.records import CONTROL, IGNITION, Failure, Ignition, failure_key
from workflow.serializer import Serializer
from workflow.signals import SignalPosition
from workflow.status import WorkflowStatus
from workflow.trials import NO_TRIALS, RetryPolicy, is_interruption

__all__ = ["IGNITIONS_LOG", "RunStore"]

IGNITIONS_LOG = "ignitions:"
"""With the definition's name behind it: the log of workflow ids that were ever started, which outlives their runs."""
FAILURE_LIMIT = 2000
"""Characters of an error's message that are kept for people to read."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Written:
    """One write as it was sent."""

    control: Control
    records: Mapping[str, bytes]
    deleted: Sequence[str]


class RunStore:
    """The records of one workflow id. Blocking; made for one call or one segment."""

    def __init__(self, persistence: Persistence, serializer: Serializer, workflow_id: str, clock: Clock) -> None:
        self.workflow_id = workflow_id
        self.lease_timeout: float | None = None
        self.retry: RetryPolicy | None = None
        self.bus_position: SignalPosition | None = None
        self.step = ""
        """The name of the step that the run is at, for listings."""
        self.failing = ""
        """The id of the step whose node was the first to raise."""
        self._persistence = persistence
        self._serializer = serializer
        self._is_plain = hides_nothing(serializer)
        self._clock = clock
        self._lock = threading.Lock()
        self._records: dict[str, bytes] = {}
        self._control: Control | None = None
        self._ignition: Ignition | None = None
        self._unconfirmed: list[_Written] = []
        self._displaced = False
        self._closed = False
        self._ours = False
        self._process = os.getpid()

    # --- reading ------------------------------------------------------------------------------------------------------------

    def load(self) -> Control | None:
        """Read the whole partition in one trip. None when there is no run."""
        self._records = self._persistence.load(self.workflow_id)
        self._control = self._ignition = None
        self._unconfirmed.clear()
        self._displaced = self._ours = False
        if CONTROL not in self._records:
            return None
        self._control = self._decoded_control(self._records[CONTROL])
        return self._control

    @property
    def control(self) -> Control:
        """Where the run stands, as last read or written. Only after a run was found or made."""
        if self._control is None:
            raise WorkflowError(f"workflow {self.workflow_id!r} has no run")
        return self._control

    @property
    def ignition(self) -> Ignition:
        """What the run was started with. Only after a run was found or made.

        It is decoded when first asked for, so that a run whose record is damaged can still be abandoned.
        """
        if self._ignition is None:
            self._ignition = self._decoded_ignition()
        return self._ignition

    @property
    def record_keys(self) -> tuple[str, ...]:
        """The keys of all records."""
        return tuple(self._records)

    def has(self, key: str) -> bool:
        """Whether a record exists. Nothing is read: what was loaded, or written since the ignition, is all there is."""
        return key in self._records

    def value(self, key: str) -> Any:
        """The value of a record, detached. Raises `PersistenceError` naming the key when it is corrupt."""
        data = self._records[key]
        try:
            return self._serializer.loads(data, context=self._context(key))
        except PersistenceError as trouble:
            raise UnreadableRecordError(f"record {key!r} of workflow {self.workflow_id!r}: {trouble}") from trouble

    def read(self, key: str, shape: Callable[[Mapping[str, Any]], T]) -> T | None:
        """A record as a value of the given shape; None when absent. A record of another shape is corruption, never absent."""
        if key not in self._records:
            return None
        value = self.value(key)
        try:
            return shape(cast(Mapping[str, Any], value))
        except (KeyError, TypeError, ValueError) as trouble:
            message = f"record {key!r} of workflow {self.workflow_id!r} is invalid ({trouble}): restore it or abandon() the run"
            raise UnreadableRecordError(message) from trouble

    def admit(self, annotation: Any) -> None:
        """Make the classes of an annotation known to the codec, where it asks for that."""
        admit = getattr(self._serializer, "admit", None)
        if admit is not None:
            admit(annotation)

    # --- writing ------------------------------------------------------------------------------------------------------------

    def ignite(self, control: Control, ignition: Ignition) -> bool:
        """Create the run in one write. False when the workflow id is held by a run."""
        first = self._encoded(IGNITION, ignition.to_record())
        fence = self._encoded(CONTROL, control.to_record())
        index = self._entry(control, ignition, None)
        logs = [(IGNITIONS_LOG + ignition.name, self.workflow_id.encode())]
        logs += self._lines(Told(Happened.STARTED), control, ignition)
        with self._lock:
            self._check_open()
            if not self._persistence.initialize_if_absent(self.workflow_id, CONTROL, fence, {IGNITION: first}, index, logs):
                return False
            self._records = {CONTROL: fence, IGNITION: first}
            self._control, self._ignition = control, ignition
            self._ours = True
        return True

    def replace(
        self,
        control: Control,
        told: Told | None = None,
        *,
        records: Mapping[str, Any] | None = None,
        wake: float | None = None,
    ) -> bool:
        """Write a control made outside a segment (a claim, a settling). False when the run has changed since it was read."""
        with self._lock:
            self._check_open()
            self._ours = self._write(control, records or {}, told=told, wake=wake)
            return self._ours

    def commit(
        self,
        records: Mapping[str, Any] | Callable[[Control], Mapping[str, Any]],
        change: Callable[[Control], Control] = lambda control: control,
        *,
        verb: str = "write",
        delete: Iterable[str] = (),
        told: Told | Callable[[Control], Told] | None = None,
        wake: float | None = None,
        at: str | None = None,
    ) -> None:
        """One write of the segment: records and the changed control, with the lease renewed.

        ``at`` is the name of the step that the run is at from now on, as listings show it.
        ``change`` and, where they are functions, ``records`` and ``told`` see control as it is when nobody else can write.
        Raises `WorkflowRefusedError` when the run is not ours any more.
        """
        if self._is_copy():
            raise stale_attempt(self.workflow_id, verb)
        with self._lock:
            self._confirm()
            if self._displaced:
                raise self._displacement(verb)
            self.step = self.step if at is None else at
            control = change(self._renewed())
            written = records(control) if callable(records) else records
            if not self._write(control, written, delete, told(control) if callable(told) else told, wake):
                raise self._displacement(verb)

    def fail(self, error: BaseException) -> bool:
        """Record why the segment ended, if there is one that is still ours and not settled. Whether it was recorded.

        Raises nothing: what goes wrong here must not hide the error that is being recorded.
        """
        if self._is_copy():
            return False
        with self._lock:
            return self._fail(error)

    def renew(self) -> bool:
        """Extend a lease that is still live. False when it is lost, or when there is nothing to renew."""
        with self._lock:
            self._confirm()
            if self._displaced or self._control is None or not self._control.lease_is_live(self._second()):
                return False
            return self._write(self._renewed(), {})

    def delete(self, told: Told | None = None) -> bool:
        """Delete the whole partition. False when the run has changed since it was read."""
        if self._is_copy():
            return False
        with self._lock:
            if self._displaced:
                return False
            self._confirm()
            lines = self._last_lines(told)
            return self._persistence.delete_if_unchanged(self.workflow_id, CONTROL, self._records[CONTROL], lines)

    def forget_cancelled(self) -> None:
        """Delete a run that was cancelled while it was ours, unless it is retained. Somebody else does it if this cannot."""
        if self._is_copy():
            return
        with suppress(Exception), self._lock:
            held = self._persistence.get(self.workflow_id, CONTROL)
            if held is not None:
                control = self._decoded_control(held)
                # Without a lease it is retained.
                if control.is_cancelled(self.control.run_id) and control.lease_expires_at is not None:
                    self._persistence.delete_if_unchanged(self.workflow_id, CONTROL, held)

    def close(self, error: BaseException | None = None) -> None:
        """Write nothing more, for good. With an error the run is marked failed first, as by `fail`.

        A call that is about to get hold of a run will not.
        """
        if self._is_copy():
            return
        with self._lock:
            if error is not None:
                self._fail(error)
            self._closed = self._displaced = True

    def displaced(self, verb: str) -> WorkflowRefusedError:
        """The refusal for a segment whose run is not its own any more."""
        if self._is_copy():
            return stale_attempt(self.workflow_id, verb)
        with self._lock:
            return self._displacement(verb)

    def recall_step(self) -> None:
        """Read which step the run is at, so that a write from outside does not forget it."""
        entry = self._persistence.entry(self.workflow_id)
        with suppress(PersistenceError):
            self.step = RunSummary.of(entry).step if entry is not None else ""

    def lease(self) -> int | None:
        """The end of a lease that begins now, in whole Unix seconds: never sooner than asked for."""
        return None if self.lease_timeout is None else math.ceil(self.now() + self.lease_timeout)

    def moment(self) -> dt.datetime:
        """The present moment."""
        return self._clock.now()

    def now(self) -> float:
        """The present moment in Unix seconds."""
        return self.moment().timestamp()

    def _is_copy(self) -> bool:
        """Whether this is a forked child's copy of the store. The run stays the parent's, and the lock may never be freed."""
        return os.getpid() != self._process

    # --- the one place that writes ------------------------------------------------------------------------------------------

    def _write(
        self,
        control: Control,
        records: Mapping[str, Any],
        delete: Iterable[str] = (),
        told: Told | None = None,
        wake: float | None = None,
    ) -> bool:
        gone = list(delete)
        encoded = {key: self._encoded(key, value) for key, value in records.items()}
        encoded[CONTROL] = self._encoded(CONTROL, control.to_record())
        index = self._entry(control, self.ignition, wake)
        lines = self._lines(told, control, self.ignition)
        written = _Written(control, encoded, gone)
        try:
            if not self._persistence.write_if_unchanged(
                self.workflow_id, CONTROL, self._records[CONTROL], encoded, gone, index, lines
            ):
                self._displaced = True
                return False
        except UnreachableError:
            self._unconfirmed.append(written)
            raise
        self._adopt(written)
        return True

    def _confirm(self) -> None:
        """After a lost reply, find out whether the write took effect: control then holds bytes that only we can write."""
        if not self._unconfirmed:
            return
        held = self._persistence.get(self.workflow_id, CONTROL)
        for written in self._unconfirmed:
            if held == written.records[CONTROL]:
                self._adopt(written)
                # A run that this very write has settled is not touched again.
                self._displaced = written.control.status is not WorkflowStatus.RUNNING
        self._unconfirmed.clear()

    def _adopt(self, written: "_Written") -> None:
        for key in written.deleted:
            self._records.pop(key, None)
        self._records.update(written.records)
        self._control = written.control

    def _fail(self, error: BaseException) -> bool:
        with suppress(Exception):
            self._confirm()
            if self._ours and not self._displaced and self.control.status is WorkflowStatus.RUNNING:
                return self._write_failure(error)
        return False

    def _write_failure(self, error: BaseException) -> bool:
        trials = self.control.trials
        trials = trials.with_takeover() if is_interruption(error) else trials.with_failure(self._second())
        wake = self.retry.next_try(error, trials, self.now()) if self.retry is not None else None
        again = None if wake is None else dt.datetime.fromtimestamp(wake, dt.UTC)
        failure = Failure(type(error).__qualname__, _message(error), self.moment(), again)
        told = Told(Happened.FAILED, step=self.failing, error=failure.error, message=failure.message, retry_at=wake)
        control = self._renewed().failed(NO_TRIALS if wake is None else trials)
        return self._write(control, {failure_key(control.run_id): failure.to_record()}, told=told, wake=wake)

    def _check_open(self) -> None:
        if self._closed:
            raise WorkflowError(f"workflow {self.workflow_id!r}: whoever made this call has given it up")

    def _renewed(self) -> Control:
        running = self.control.status is WorkflowStatus.RUNNING
        return self.control.committed(self.lease() if running else self.control.lease_expires_at)

    def _lines(self, told: Told | None, control: Control, ignition: Ignition) -> list[tuple[str, bytes]]:
        """What to append to the history, if this run has one."""
        if told is None or ignition.history is None:
            return []
        told = told if self._is_plain else told.without_words()
        line = HistoryLine(
            told.kind,
            self.workflow_id,
            control.run_id,
            ignition.name,
            control.attempt,
            ignition.history,
            self.now(),
            ignition.tag,
            told.step,
            told.seconds,
            told.error,
            told.message,
            told.retry_at,
            told.waits_for,
        )
        return [(HISTORY_LOG, write_line(line))]

    def _last_lines(self, told: Told | None) -> list[tuple[str, bytes]]:
        """The same for a run that is deleted, which may be damaged."""
        try:
            return self._lines(told, self.control, self.ignition)
        except (PersistenceError, WorkflowError):
            return []

    def _entry(self, control: Control, ignition: Ignition, wake: float | None) -> IndexEntry:
        return entry_of(
            self.workflow_id,
            control,
            name=ignition.name,
            tag=ignition.tag,
            step=self.step,
            now=self.now(),
            wake=wake,
        )

    def _displacement(self, verb: str) -> WorkflowRefusedError:
        """Why the run is not ours any more: it was cancelled, or somebody else has it."""
        self._displaced = True
        held = self._persistence.get(self.workflow_id, CONTROL)
        if held is not None:
            control = self._decoded_control(held)
            if control.is_cancelled(self.control.run_id):
                message = f"workflow {self.workflow_id!r}: cannot {verb}: its run has been cancelled"
                return WorkflowRefusedError(RefusalReason.CANCELLED, message)
        return stale_attempt(self.workflow_id, verb)

    # --- bytes --------------------------------------------------------------------------------------------------------------

    def _encoded(self, key: str, value: Any) -> bytes:
        return self._serializer.dumps(value, context=self._context(key))

    def _context(self, key: str) -> bytes:
        return f"{self.workflow_id}\x00{key}".encode()

    def _decoded_control(self, data: bytes) -> Control:
        try:
            value = self._serializer.loads(data, context=self._context(CONTROL))
        except PersistenceError as trouble:
            raise UnreadableRecordError(f"record {CONTROL!r} of workflow {self.workflow_id!r}: {trouble}") from trouble
        try:
            return Control.from_record(cast(dict[str, Any], value))
        except (KeyError, TypeError, ValueError) as trouble:
            message = f"the control record of workflow {self.workflow_id!r} is of another kind ({trouble})"
            raise WorkflowError(message) from trouble

    def _decoded_ignition(self) -> Ignition:
        ignition = self.read(IGNITION, Ignition.from_record)
        if ignition is None:
            raise WorkflowError(f"workflow {self.workflow_id!r} has no ignition record: restore it from a backup")
        if ignition.run_id != self.control.run_id:
            raise WorkflowError(
                f"workflow {self.workflow_id!r} has the ignition record of run {ignition.run_id!r}, "
                f"but its control is of run {self.control.run_id!r}: restore it from a backup"
            )
        return ignition

    def _second(self) -> int:
        return int(self.now())


def _message(error: BaseException) -> str:
    try:
        return str(error)[:FAILURE_LIMIT]
    except Exception:  # noqa: BLE001 - a foreign error may not even be able to say what it is
        return ""
