"""What a mesh forgets in time, so that it does not grow for ever: a bounded part at a look, by whichever sweeper looks.

what                                                        when
workers of which nothing is heard                           a day after their last beat: the next one bears another name
failed sweeps of the watchdog, which nobody tries again     a day after they failed: there is one each minute
what became of the alerts of a signal                       `workers.signals.deliveries.KEPT_FOR`

Runs and their history have times of their own (`workers.sweeper`, `workers.history.pruning`).
"""

import datetime as dt

import structlog

from bus import BusError
from mesh.errors import MeshError
from persistence import IndexEntry, PersistenceError, UnreachableError
from workers.composition import Runtime
from workers.definitions import WATCHDOG
from workers.signals.beats import WORKER_PREFIX
from workers.signals.deliveries import DeliveryLedger
from workflow import WorkflowError, WorkflowStatus

__all__ = ["LOOK_EVERY", "Housekeeping"]

LOOK_EVERY = 60.0
"""Seconds between two looks."""
DAY = dt.timedelta(days=1)

_log = structlog.get_logger(__name__)


class Housekeeping:
    """Looks at what one mesh keeps."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        stores = (runtime.deliveries, runtime.deliveries_here)
        self._deliveries = [DeliveryLedger(store, now=runtime.clock.now) for store in stores]
        self._troubled = False

    def look_patiently(self) -> None:
        """`look`; trouble with the server is said once, and raises nothing."""
        try:
            self.look()
            self._troubled = False
        except (PersistenceError, BusError, MeshError) as trouble:
            if not self._troubled:
                _log.warning("nothing is forgotten until this is over", trouble=str(trouble))
            self._troubled = True

    def look(self) -> int:
        """Forget what is over. Returns how much that was."""
        before = self._runtime.clock.now() - DAY
        return self._forget_workers(before) + self._forget_sweeps(before) + sum(each.tidy() for each in self._deliveries)

    def _forget_workers(self, before: dt.datetime) -> int:
        heartbeats = self._runtime.heartbeats
        gone = [(agent, seen) for agent, seen in heartbeats.all().items() if agent.startswith(WORKER_PREFIX) and seen < before]
        return sum(heartbeats.forget(agent, seen) for agent, seen in gone)

    def _forget_sweeps(self, before: dt.datetime) -> int:
        failed = self._runtime.store.find(name=WATCHDOG, status=WorkflowStatus.FAILED.value)
        return sum(self._forget_sweep(entry, before) for entry in failed if entry.due is None)

    def _forget_sweep(self, entry: IndexEntry, before: dt.datetime) -> bool:
        try:
            engine = self._runtime.engine_of(entry.name, entry.partition)
            found = engine.inspect(entry.partition)
            if found is None or found.failure is None or found.failure.at >= before:
                return False
            return engine.abandon(entry.partition, found.run_id, found.execution_attempt)
        except UnreachableError:
            raise
        except (PersistenceError, WorkflowError):
            return False  # it has changed meanwhile, or cannot be read: that is for people
