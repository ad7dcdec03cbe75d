"""The sweeper: takes what is due from the index and sends hints. The index remembers, not the broker.

Due are a start whose hint never arrived, a lease that ended, a timer, a retry, a wait whose signal may have come before it, and
a kept result whose time is over. Any number of sweepers may run: each moves an entry by a fenced write before it sends the
hint, so that the next one finds it moved. Two that look in the same instant send two, of which a worker refuses one.
"""

import threading
import time
from collections.abc import Callable

import structlog

from persistence import IndexEntry, Persistence, PersistenceError, UnreachableError
from workers.broker.hints import Hints
from workflow import WorkflowEngine, WorkflowError, WorkflowRefusedError, WorkflowStatus
from workflow.index import RunSummary, postpone, put_off

__all__ = ["BATCH", "Sweeper"]

BATCH = 100
"""Entries that one look takes."""
DAMAGED_REST = 3600
"""Seconds between two looks at a damaged run."""
_ENDED = (WorkflowStatus.COMPLETED.value, WorkflowStatus.CANCELLED.value)

_log = structlog.get_logger(__name__)


class Sweeper:
    """Looks every ``every`` seconds. ``now`` gives Unix seconds.

    ``engine_of`` gives the engine that reads a run's records, by name and workflow id. ``attend`` sees to runs that wait for a
    signal, and returns False for what it leaves to a hint.
    """

    def __init__(
        self,
        store: Persistence,
        hints: Hints,
        *,
        every: float,
        now: Callable[[], float] = time.time,
        engine_of: Callable[[str, str], WorkflowEngine] | None = None,
        attend: Callable[[IndexEntry, float], bool] | None = None,
    ) -> None:
        self._store = store
        self._hints = hints
        self._every = every
        self._now = now
        self._engine_of = engine_of
        self._engine = WorkflowEngine(store)
        self._attend = attend
        self._stopping = threading.Event()
        self._troubled = False
        self._unheard = False
        self._damaged: set[str] = set()

    def run(self) -> None:
        """Sweep until `stop`. Trouble with the store is said once and waited out."""
        while not self._stopping.is_set():
            self._sweep_patiently()
            self._stopping.wait(self._every)

    def stop(self) -> None:
        """End `run`. From any thread or signal handler."""
        self._stopping.set()

    def sweep(self) -> int:
        """Look once. Returns how many entries were seen to. Raises `persistence.UnreachableError` without a server.

        While the broker takes no hint, the others are left for the next look: to try each would take long, and put each off.
        """
        self._unheard = False
        seen = 0
        for entry in self._store.due(self._now(), BATCH):
            seen += self._see_to_safely(entry)
            if self._unheard:
                break
        return seen

    def _sweep_patiently(self) -> None:
        try:
            self.sweep()
            self._troubled = False
        except UnreachableError as trouble:
            if not self._troubled:
                _log.warning("cannot sweep until the store answers", trouble=str(trouble))
            self._troubled = True

    def _see_to_safely(self, entry: IndexEntry) -> bool:
        """One damaged run must not keep the sweeper from the others. It is named once, and left to a person."""
        try:
            return self._see_to(entry)
        except UnreachableError:
            raise
        except (PersistenceError, WorkflowError) as damage:
            if entry.partition not in self._damaged:
                self._damaged.add(entry.partition)
                _log.error(
                    "a damaged run is passed over: restore or abandon it", workflow_id=entry.partition, damage=str(damage)
                )
            # So that a crowd of them does not stand before all others.
            return put_off(self._store, entry.partition, self._now() + DAMAGED_REST) and False

    def _see_to(self, entry: IndexEntry) -> bool:
        if entry.status in _ENDED:
            return self._forget(entry)
        if self._attend is not None and self._attend(entry, self._now()):
            return True
        moved = postpone(self._store, entry.partition, self._now())
        if moved is None:
            return False  # another sweeper, or the run itself, was faster
        summary = RunSummary.of(moved)
        if summary.hints > 1:
            _log.info("hint sent again", workflow_id=entry.partition, run_id=summary.run_id, hints=summary.hints)
        self._unheard = not self._hints.send(entry.name, entry.partition, summary.run_id)
        return True

    def _forget(self, entry: IndexEntry) -> bool:
        try:
            engine = self._engine if self._engine_of is None else self._engine_of(entry.name, entry.partition)
            engine.acknowledge(entry.partition, RunSummary.of(entry).run_id)
        except WorkflowRefusedError:
            return False  # gone already, or replaced
        return True
