"""The one store of a simulated universe. It checks each committed write, and remembers what the rules of the end need.

Whatever breaks a rule is noted, not raised: the engine may swallow what a store raises.
"""

from functools import lru_cache
from typing import Any, cast

from persistence import InMemoryPersistence
from tests.simulation import rules
from workflow import Clock, JsonSerializer, WorkflowEngine, WorkflowStatus
from workflow.control import Control
from workflow.history import HISTORY_LOG, HistoryLine, read_line
from workflow.records import CONTROL, IGNITION

__all__ = ["Ledger"]

WRITES = {"initialize_if_absent", "write_if_unchanged", "delete_if_unchanged"}

_codec = JsonSerializer()


class Ledger:
    """What was committed, by whom, and what was wrong with it."""

    def __init__(self, clock: Clock) -> None:
        self.store = InMemoryPersistence()
        self.violations: list[str] = []
        self.stood: set[tuple[str, int, WorkflowStatus]] = set()
        """Every (run, attempt, status) that there ever was; completion without retention counts too."""
        self.accepted: dict[tuple[str, str], list[Any]] = {}
        """The payloads that were accepted, by (run, step)."""
        self.recorded: dict[str, bytes] = {}
        """Every record of a step ever committed, by key, those folded or deleted since too."""
        self.ended: list[str] = []
        """The runs that were completed, in this order."""
        self.claims: list[tuple[str, str]] = []
        """(run, process) for each claim, its birth included, in their order."""
        self._clock = clock
        self._owners: dict[str, str] = {}
        self._displaced: set[str] = set()
        self._told_until: str | None = None

    def call(self, by: str, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """One operation of the store, in the name of the process ``by``."""
        operation = getattr(self.store, name)
        if name not in WRITES:
            return operation(*args, **options)
        partition = cast(str, args[0])
        before = self.store.load(partition)
        if not operation(*args, **options):
            return False
        after = self.store.load(partition)
        self._committed(by, partition, before, after)
        if self._keeps_history(before or after):
            self.violations += rules.broken_in_history(
                self._decoded(before), self._decoded(after), before, after, self._newly_told()
            )
        return True

    def control(self, partition: str) -> Control | None:
        """Where the run of a partition stands."""
        return self._decoded(self.store.load(partition))

    def owner(self, partition: str) -> str | None:
        """The process that executes the run of a partition, as far as the store knows."""
        control = self.control(partition)
        running = control is not None and control.status is WorkflowStatus.RUNNING
        return self._owners.get(control.writer) if control is not None and running else None

    def blame(self, text: str) -> None:
        """Note that a rule was broken."""
        self.violations.append(text)

    def _committed(self, by: str, partition: str, before: dict[str, bytes], after: dict[str, bytes]) -> None:
        old, new = self._decoded(before), self._decoded(after)
        if new is None:
            self._deleted(by, old)
            return
        self.violations += rules.broken_by_transition(old, new, self._second())
        self.violations += rules.broken_in_records(new, before, after)
        self.violations += rules.broken_in_answers(old, new, after)
        self.violations += rules.broken_in_line(old, new)
        self.violations += rules.broken_in_index(self.store.entry(partition), new)
        self._check_owner(by, old, new)
        self._check_inspection(partition, new)
        self._remember(old, new, after)

    def _newly_told(self) -> list[HistoryLine]:
        entries = self.store.read_log(HISTORY_LOG, after=self._told_until)
        self._told_until = entries[-1].position if entries else self._told_until
        return [read_line(entry) for entry in entries]

    def _keeps_history(self, records: dict[str, bytes]) -> bool:
        return IGNITION in records and cast(Any, _codec.loads(records[IGNITION])).get("history") is not None

    def _deleted(self, by: str, old: Control | None) -> None:
        by_owner = old is not None and old.status is WorkflowStatus.RUNNING and self._owners.get(old.writer) == by
        self.violations += rules.broken_by_deletion(old, by_owner, self._second())
        if old is not None:
            self._displaced.add(old.writer)
        if old is not None and by_owner:
            self.stood.add((old.run_id, old.attempt, WorkflowStatus.COMPLETED))
            self.ended.append(old.run_id)

    def _check_owner(self, by: str, old: Control | None, new: Control) -> None:
        """A writer's token belongs to one process, and never comes back after another's."""
        if old is not None and old.writer != new.writer:
            self._displaced.add(old.writer)
        if new.writer in self._displaced:
            self.blame(f"the displaced writer of attempt {new.attempt} wrote again")
        if new.writer not in self._owners:
            self.claims.append((new.run_id, by))
        owner = self._owners.setdefault(new.writer, by)
        if owner != by:
            self.blame(f"{by} wrote in the name of {owner}")

    def _check_inspection(self, partition: str, new: Control) -> None:
        try:
            seen = WorkflowEngine(self.store, clock=self._clock).inspect(partition)
        except Exception as trouble:  # noqa: BLE001 - whatever makes a run unreadable is what is looked for
            self.blame(f"the run cannot be inspected: {trouble!r}")
            return
        if seen is None or (seen.run_id, seen.status, seen.execution_attempt) != (new.run_id, new.status, new.attempt):
            self.blame(f"the inspection says {seen}, control says {new}")

    def _remember(self, old: Control | None, new: Control, after: dict[str, bytes]) -> None:
        self.stood.add((new.run_id, new.attempt, new.status))
        if new.status is WorkflowStatus.COMPLETED:
            self.ended.append(new.run_id)
        answered = rules.newly_accepted(old, new)
        if answered is not None and answered.input is not None:
            self.accepted.setdefault((new.run_id, answered.step_id), []).append(answered.input.payload)
        for key in after.keys() - self.recorded.keys():
            if not key.startswith("__"):
                self.recorded[key] = after[key]

    def _decoded(self, records: dict[str, bytes]) -> Control | None:
        return _control(records[CONTROL]) if CONTROL in records else None

    def _second(self) -> int:
        return int(self._clock.now().timestamp())


@lru_cache(maxsize=256)
def _control(data: bytes) -> Control:
    return Control.from_record(cast(dict[str, Any], _codec.loads(data)))
