"""The relay: takes the lines of history from the store's log into the archive, and tells the bus of those that people care for.

Any number of relays may run, and each may die anywhere: a page of the log is done when the remembered position has moved
behind it, and everything before that may be repeated. The archive passes over lines that it holds, the bus over signals.
"""

import time
from collections.abc import Callable
from hashlib import sha256

import structlog

from bus import BusError, BusUnreachableError, Signal, SignalBus
from persistence import LogEntry, Persistence, PersistenceError, UnreachableError
from workers.history.archive import RunArchive
from workers.history.pruning import Pruner
from workers.history.telling import signal_of, without_wait
from workflow.history import HISTORY_LOG, HistoryLine, read_line

__all__ = ["PAGE", "PAGES", "HistoryRelay"]

PAGE = 500
"""Lines that are read at once."""
PAGES = 20
"""Pages of one pass unless told otherwise."""
PATIENT_PAGES = 4
"""Pages of a patient pass, some 2,000 lines: what is over is forgotten between two of them."""

_log = structlog.get_logger(__name__)


class HistoryRelay:
    """Passes lines on from one store. ``serializer`` is the codec of the workflows; ``now`` gives Unix seconds."""

    def __init__(
        self,
        store: Persistence,
        archive: RunArchive,
        signals: SignalBus,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._archive = archive
        self._signals = signals
        self._pruner = Pruner(archive, now=now)
        self._troubled = False
        self._named: set[str] = set()

    def run_patiently(self) -> None:
        """Pass on what there is and forget what is over. Trouble with store or bus is said once, and raises nothing."""
        try:
            self.pass_on(PATIENT_PAGES)
            self._pruner.tidy()
            self._troubled = False
        except (PersistenceError, BusError) as trouble:
            if not self._troubled:
                _log.warning("the history of runs is not passed on until this is over", trouble=str(trouble))
            self._troubled = True

    def pass_on(self, pages: int = PAGES) -> bool:
        """Pass on what the log holds, so many pages at most. Whether everything was passed on.

        Raises `persistence.UnreachableError` and `bus.BusUnreachableError` without a server; what was done until then counts.
        """
        return any(not self._pass_page_on() for _ in range(pages))

    def _pass_page_on(self) -> bool:
        """Pass one page on. False when there was none."""
        before = self._archive.position()
        entries = self._read(before)
        if not entries:
            return False
        lines = [line for line in map(self._line, entries) if line is not None]
        for of_run in _by_run(lines):
            if not self._merge(of_run, before):
                return True  # another relay is done with this page
        for signal in filter(None, map(signal_of, lines)):
            self._publish(signal)
        self._archive.move(before, entries[-1].position)
        self._named.clear()
        return True

    def _read(self, before: str | None) -> list[LogEntry]:
        try:
            return self._store.read_log(HISTORY_LOG, before, PAGE)
        except ValueError as wrong:
            raise PersistenceError(f"the place in the log that the archive of runs remembers is damaged: {wrong}") from wrong

    def _line(self, entry: LogEntry) -> HistoryLine | None:
        try:
            return read_line(entry)
        except PersistenceError as damage:
            self._name(sha256(entry.data).hexdigest(), "a damaged line of the history is passed over", damage)
            return None

    def _merge(self, lines: list[HistoryLine], page: str | None) -> bool:
        try:
            return self._archive.merge(lines, page)
        except UnreachableError:
            raise
        except PersistenceError as damage:
            self._name(lines[0].run_id, "a run whose history is damaged is passed over", damage)
            return True

    def _publish(self, signal: Signal) -> None:
        try:
            self._signals.publish(signal.id, signal.topic, signal.payload)
        except BusUnreachableError:
            raise
        except BusError as refused:
            self._publish_in_short(signal, refused)

    def _publish_in_short(self, signal: Signal, refused: BusError) -> None:
        """What a request shows may be no payload; that a run waits is to be told all the same."""
        try:
            self._signals.publish(signal.id, signal.topic, without_wait(signal).payload)
        except BusUnreachableError:
            raise
        except BusError:
            self._name(signal.id, "a signal of the history is passed over", refused)

    def _name(self, what: str, message: str, damage: Exception) -> None:
        """Say it once, also when the page has to be repeated."""
        if what not in self._named:
            self._named.add(what)
            _log.error(message, damage=str(damage))


def _by_run(lines: list[HistoryLine]) -> list[list[HistoryLine]]:
    """The lines of each run, in their order."""
    runs: dict[tuple[str, str, float], list[HistoryLine]] = {}
    for line in lines:
        runs.setdefault((line.workflow_id, line.run_id, line.started), []).append(line)
    return list(runs.values())
