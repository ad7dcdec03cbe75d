"""A store with runs, an archive beside it, a bus, and a relay between them; every call of any of them can be struck."""

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import fakeredis
import pytest

from bus import InMemorySignalBus
from persistence import InMemoryPersistence, Persistence, RedisPersistence
from workers.history import HistoryRelay, PastRun, Query, RunArchive
from workflow import ManualClock
from workflow.history import HISTORY_LOG, Happened, HistoryLine, write_line

START = dt.datetime(2026, 11, 30, 7, 0, tzinfo=dt.UTC)


class ProcessDeath(BaseException):
    """Stands for a process that is killed in a call."""


class Struck:
    """Hands every call on to a store or a bus, counts them, and dies before or after one of them."""

    def __init__(self, inner: Any, counter: list[int]) -> None:
        self._inner = inner
        self._counter = counter
        self.die_at: tuple[int, str] | None = None

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._inner, name)

        def passed_on(*args: Any, **options: Any) -> Any:
            self._counter[0] += 1
            if self.die_at == (self._counter[0], "before"):
                raise ProcessDeath
            result = target(*args, **options)
            if self.die_at == (self._counter[0], "after"):
                raise ProcessDeath
            return result

        return passed_on


STORES: dict[str, Callable[[fakeredis.FakeServer, str], Persistence]] = {
    "memory": lambda server, prefix: InMemoryPersistence(),
    "fakeredis": lambda server, prefix: RedisPersistence(fakeredis.FakeRedis(server=server), prefix, retry_delays=()),
}


@dataclass
class Office:
    """What a test works with. ``tell`` appends lines to the log, as runs do."""

    store: Persistence
    kept: Persistence
    bus: InMemorySignalBus
    clock: ManualClock
    archive: RunArchive

    def relay(self, store: Any = None, kept: Any = None, bus: Any = None, **options: Any) -> HistoryRelay:
        archive = self.archive if kept is None else RunArchive(kept)
        return HistoryRelay(store or self.store, archive, bus or self.bus, now=self.now, **options)

    def now(self) -> float:
        return self.clock.now().timestamp()

    def line(self, kind: str, workflow_id: str = "order:1", run_id: str = "run_1", **known: Any) -> HistoryLine:
        told = {"name": "orders", "attempt": 1, "started": START.timestamp(), "at": self.now(), **known}
        return HistoryLine(Happened(kind), workflow_id, run_id, **told)

    def tell(self, *lines: HistoryLine) -> None:
        for line in lines:
            self.write(write_line(line), line.workflow_id)

    def write(self, data: bytes, partition: str = "p") -> None:
        self.store.initialize_if_absent(partition, "__told", b"")
        assert self.store.write_if_unchanged(partition, "__told", b"", {}, append=[(HISTORY_LOG, data)])

    def runs(self, **query: Any) -> list[PastRun]:
        return list(self.archive.find(Query(**query)))

    def kinds(self, run: PastRun) -> list[str]:
        return [line.kind.value for line in self.archive.lines(run)]

    def signals(self) -> list[tuple[str, str]]:
        return [(signal.topic, signal.id) for signal in self.bus.read()]

    def many(self, count: int, **known: Any) -> Iterable[HistoryLine]:
        for number in range(count):
            started = START.timestamp() + number
            yield self.line("started", f"order:{number}", f"run_{number}", started=started, at=started, **known)


def new_office(kind: str) -> Office:
    server, make = fakeredis.FakeServer(), STORES[kind]
    kept = make(server, "archive:")
    return Office(make(server, "runs:"), kept, InMemorySignalBus(), ManualClock(START), RunArchive(kept))


@pytest.fixture(params=STORES)
def office(request: pytest.FixtureRequest) -> Office:
    """Return an empty office on each kind of store that needs no server."""
    return new_office(request.param)


@pytest.fixture
def memory_office() -> Callable[[], Office]:
    """Return what makes an empty office in memory."""
    return lambda: new_office("memory")


@pytest.fixture
def redis_office() -> Callable[[], Office]:
    """Return what makes an empty office in a Redis of the test's own."""
    return lambda: new_office("fakeredis")


@pytest.fixture
def struck() -> type[Struck]:
    return Struck


@pytest.fixture
def process_death() -> type[BaseException]:
    return ProcessDeath
