"""What the engine's tests stand on: a store that writes down what it is asked and can fail at any call, a clock, traces."""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fakeredis
import pytest

from persistence import InMemoryPersistence, Persistence, RedisPersistence, UnreachableError
from workflow import ManualClock, Workflow

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)

WRITES = {"initialize_if_absent", "write_if_unchanged", "delete_if_unchanged"}
READS = {"get", "load"}


@dataclass(frozen=True)
class Call:
    """One call of the store: its place, its name, and the records it wrote if it is a write."""

    number: int
    name: str
    records: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class RecordingPersistence:
    """Hands every call to a real store and writes it down; ``before`` and ``after`` may raise or act around each."""

    def __init__(self, inner: Persistence) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self.before: Callable[[Call], None] = lambda call: None
        self.after: Callable[[Call], None] = lambda call: None

    @property
    def names(self) -> list[str]:
        """The names of the calls so far."""
        return [call.name for call in self.calls]

    @property
    def writes(self) -> list[Call]:
        """The calls so far that may change the store."""
        return [call for call in self.calls if call.name in WRITES]

    @property
    def reads(self) -> list[Call]:
        """The calls so far that only read."""
        return [call for call in self.calls if call.name in READS]

    def forget(self) -> None:
        """Count from here."""
        self.calls.clear()

    def die_at(self, number: int, moment: str) -> None:
        """Let the process die before or after the n-th call: that call raises, and none gets through from then on."""

        def strike(call: Call) -> None:
            if call.number == number:
                self.die()
                raise ProcessDeath

        setattr(self, moment, strike)

    def die(self) -> None:
        """Let nothing through any more."""
        self.before = _refuse

    def lose_reply_of(self, number: int) -> None:
        """Let the n-th call take effect and raise all the same."""

        def lose(call: Call) -> None:
            if call.number == number:
                raise UnreachableError("the reply was lost")

        self.after = lose

    def __getattr__(self, name: str) -> Any:
        target = getattr(self.inner, name)
        if name not in WRITES | READS:
            return target

        def passed_on(*args: Any, **options: Any) -> Any:
            call = Call(len(self.calls), name, _records_of(name, args))
            self.calls.append(call)
            self.before(call)
            result = target(*args, **options)
            self.after(call)
            return result

        return passed_on


class ProcessDeath(BaseException):
    """Stands for a process that is killed: nothing it would still do reaches the store."""


def _refuse(call: Call) -> None:
    raise UnreachableError("this process is dead")


def _records_of(name: str, args: tuple[Any, ...]) -> Mapping[str, bytes]:
    match name:
        case "initialize_if_absent":
            return {**args[3], args[1]: args[2]}
        case "write_if_unchanged":
            return args[3]
        case _:
            return {}


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that stands still until it is told to move."""
    return ManualClock(NOON)


STORES: dict[str, Callable[[], Persistence]] = {
    "memory": InMemoryPersistence,
    "fakeredis": lambda: RedisPersistence(fakeredis.FakeRedis(server=fakeredis.FakeServer()), retry_delays=()),
}
"""The kinds of store that need no server."""


@pytest.fixture(params=STORES)
def inner(request: pytest.FixtureRequest) -> Persistence:
    """Return an empty store of each kind that needs no server."""
    return STORES[request.param]()


@pytest.fixture
def empty_store() -> Callable[[str], Persistence]:
    """Return what makes an empty store of a kind."""
    return lambda kind: STORES[kind]()


@pytest.fixture
def store(inner: Persistence) -> RecordingPersistence:
    """Return a recording store of each kind."""
    return RecordingPersistence(inner)


@pytest.fixture
def memory() -> RecordingPersistence:
    """Return a recording store in memory, for tests whose matter is not the store."""
    return RecordingPersistence(InMemoryPersistence())


@pytest.fixture
def recording() -> Callable[[Persistence], RecordingPersistence]:
    """Return what wraps a store anew, as a new process would meet it."""
    return RecordingPersistence


@pytest.fixture
def define(store: RecordingPersistence, clock: ManualClock) -> Callable[..., Workflow]:
    """Return what makes a workflow bound to `w` on the store and the clock of the test."""

    def make(*nodes: Callable[..., Any], **options: Any) -> Workflow:
        given: dict[str, Any] = {"persistence": store, "clock": clock, **options}
        return given.pop("cls", Workflow)(given.pop("workflow_id", "w"), nodes=nodes, **given)

    return make


@pytest.fixture
def fail_once() -> Callable[[str], None]:
    """Return what raises at the first call with each name, and never again."""
    failed: set[str] = set()

    def trip(name: str = "") -> None:
        if name not in failed:
            failed.add(name)
            raise TripError(name)

    return trip


@pytest.fixture
def trip() -> type[Exception]:
    """Return the error that `fail_once` raises."""
    return TripError


class TripError(Exception):
    """A node's own error."""


@pytest.fixture
def process_death() -> type[BaseException]:
    """Return the exception by which a recording store lets its process die."""
    return ProcessDeath
