"""The mesh's own state, as the operations role reports it: who beats, which runs failed, what waits."""

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, cast

from celery import Celery

from mesh.ports import JarvisHeartbeatStore
from mesh.sources.mesh_state import FailedRun, MeshFacts
from persistence import IndexEntry, Persistence, PersistenceError, UnreachableError
from workers.broker.hints import SEGMENTS, SWEEPS
from workers.broker.queues import waiting_messages
from workers.settings import Settings
from workflow import WorkflowEngine, WorkflowError, WorkflowStatus

__all__ = ["MeshFactsReader"]

FAILED_RUNS = 20
"""Failed runs that are told of; a briefing shows fewer."""
LOOKED_AT = 500
"""Failed runs that are looked at for those: many may yet be tried again."""


class MeshFactsReader:
    """Reads the facts when called. What it raises becomes a gap in the briefing.

    ``engine_of`` gives the engine that reads a run's records, by name and workflow id.
    """

    def __init__(
        self,
        store: Persistence,
        engine_of: Callable[[str, str], WorkflowEngine],
        heartbeats: JarvisHeartbeatStore,
        celery: Celery,
        settings: Settings,
    ) -> None:
        self._store = store
        self._engine_of = engine_of
        self._heartbeats = heartbeats
        self._celery = celery
        self._settings = settings

    def __call__(self) -> MeshFacts:
        """What there is to know now."""
        now = dt.datetime.now(dt.UTC)
        watchdog = self._settings.watchdog
        return MeshFacts(
            at=now,
            agents={agent: self._heartbeats.last_seen(agent) for agent in watchdog.agents},
            failed_runs=tuple(islice(self._failed_runs(now), FAILED_RUNS)),
            waiting=self._waiting(),
            stale_after_seconds=watchdog.stale_after_seconds,
        )

    def _failed_runs(self, now: dt.datetime) -> Iterator[FailedRun]:
        """Those that are not tried again by themselves."""
        for entry in self._store.find(status=WorkflowStatus.FAILED.value, limit=LOOKED_AT):
            if entry.due is None:
                yield from self._failed_run(entry, now)

    def _failed_run(self, entry: IndexEntry, now: dt.datetime) -> Iterator[FailedRun]:
        try:
            engine = self._engine_of(entry.name, entry.partition)
            snapshot = engine.inspect(entry.partition)
        except UnreachableError:
            raise
        except (PersistenceError, WorkflowError):
            yield FailedRun(entry.partition, now, "its records cannot be read here")
        else:
            if snapshot is not None and snapshot.failure is not None:
                failure = snapshot.failure
                yield FailedRun(entry.partition, failure.at, str(failure) if engine.hides_nothing else failure.error)

    def _waiting(self) -> dict[str, int]:
        """Messages per queue, asked of the broker."""
        with cast(Any, self._celery.connection_for_read()) as connection:
            return {queue: waiting_messages(connection, queue) for queue in (SEGMENTS, SWEEPS)}
