"""One simulated universe: a store, a clock, the world outside, and the processes that come and go.

A process sees the store through a proxy of its own, which pauses before every operation, and in which faults strike: the
process dies before or after the operation, the operation never arrives, or it takes effect and its reply is lost. A dead
process can do nothing any more; whoever goes on is a new one, with definition objects of its own.
"""

import datetime as dt
import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from persistence import UnreachableError
from tests.simulation.ledger import Ledger
from tests.simulation.scheduler import Crash, current_task, pause
from tests.simulation.world import World
from workflow import ManualClock, RefusalReason, Workflow, WorkflowEngine, WorkflowRefusedError, WorkflowState

__all__ = ["ID", "LEASE", "NOON", "Call", "Fault", "FaultPlan", "Process", "Trip", "Universe", "no_faults"]

ID = "w"
"""The workflow id of every simulated run."""
LEASE = 60
"""Seconds."""
NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


class Trip(Exception):  # noqa: N818 - it trips
    """A node's own error."""


class Fault(enum.Enum):
    """What may befall one operation."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    UNREACHED = "not reached"
    REPLY_LOST = "reply lost"


FaultPlan = Callable[[int], Fault | None]
"""What befalls the n-th operation of the universe, counted from 0."""


def no_faults(number: int) -> Fault | None:
    """Nothing ever goes wrong."""
    return None


@dataclass(frozen=True, slots=True)
class Call:
    """How a call of the engine ended: with a value, a refusal, a node's error, or trouble with the store."""

    verb: str
    value: Any = None
    refusal: RefusalReason | None = None
    error: Exception | None = None


R = RefusalReason
CONTINUING = {R.NO_RUN, R.STALE_RUN, R.STALE_ATTEMPT, R.EXECUTING, R.NOT_AWAITED, R.CANCELLED}
DOCUMENTED = {
    "start": {R.RUN_IN_FLIGHT, R.STALE_RUN, R.STALE_ATTEMPT, R.EXECUTING, R.CONFLICT, R.CANCELLED},
    "inspect": set[R](),
    "ignite": {R.RUN_IN_FLIGHT, R.CONFLICT},
    "resume": CONTINUING,
    "signal": CONTINUING,
    "abandon": {R.STALE_RUN, R.STALE_ATTEMPT, R.EXECUTING, R.COMPLETED, R.CONFLICT},
    "acknowledge": {R.STALE_RUN, R.NOT_COMPLETED, R.EXECUTING, R.CONFLICT},
    "cancel": {R.STALE_RUN, R.COMPLETED},
}
"""The refusals that each verb may answer with."""


@dataclass
class Universe:
    """Everything that a schedule happens in. ``define`` makes a definition for one process."""

    define: Callable[["Process"], Workflow[Any]]
    faults: FaultPlan = no_faults
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOON))
    trace: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    struck: list[tuple[int, Fault]] = field(default_factory=list[tuple[int, Fault]])
    operations: int = 0

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.clock)
        self.world = World(self.ledger)
        self._born = 0

    def process(self, name: str = "process") -> "Process":
        """A new process image."""
        self._born += 1
        return Process(self, f"{name}.{self._born}")

    def advance(self, seconds: float) -> None:
        """Move the clock on."""
        self.clock.advance(seconds)
        self.trace.append((current_task(), "", "clock", f"+{seconds}"))

    def lines(self) -> list[str]:
        """The trace as text: task, process, operation and what became of it."""
        return [f"{number:4} " + " | ".join(parts) for number, parts in enumerate(self.trace)]


class Process:
    """One process image: a proxy of the store, and a definition of its own."""

    def __init__(self, universe: Universe, name: str) -> None:
        self.universe = universe
        self.name = name
        self.dead = False
        self.in_trouble = False
        """Whether an operation of it has failed: from then on its calls may end with that."""
        self.leases: list[Any] = []
        """The stores whose leases this process would renew now."""
        self.store: Any = ProcessStore(self)
        self.clock = universe.clock
        self.world = universe.world
        self.workflow = universe.define(self)
        self.engine = WorkflowEngine(self.store, clock=universe.clock)

    def call(self, verb: str, action: Callable[[], Any]) -> Call:
        """Call the engine, and check that it ends in a documented way. Lets `Crash` pass."""
        try:
            ended = Call(verb, action())
        except WorkflowRefusedError as refused:
            ended = Call(verb, refusal=refused.reason)
        except Trip as error:
            ended = Call(verb, error=error)
        except UnreachableError as error:
            ended = Call(verb, error=error)
            if not self.in_trouble:
                self.universe.ledger.blame(f"{verb} says that the store is in trouble, and it is not: {error!r}")
        except Exception as error:  # noqa: BLE001 - anything else is a finding
            ended = Call(verb, error=error)
            self.universe.ledger.blame(f"{verb} ended with {error!r}")
        self._judge(ended)
        return ended

    def _judge(self, call: Call) -> None:
        ledger = self.universe.ledger
        if call.refusal is not None and not self._is_documented(call.verb, call.refusal):
            ledger.blame(f"{call.verb} was refused with {call.refusal}")
        if ledger.owner(ID) == self.name and not self.in_trouble:
            ledger.blame(f"{call.verb} has ended ({_ending(call)}), and its run still looks executed")
        if isinstance(call.value, WorkflowState):
            seen = call.value.execution
            if (seen.run_id, seen.attempt, seen.status) not in ledger.stood:
                ledger.blame(f"{call.verb} returned {seen}, and the run never stood there")
        self.universe.trace.append((current_task(), self.name, call.verb, _ending(call)))

    def _is_documented(self, verb: str, refusal: RefusalReason) -> bool:
        if refusal is RefusalReason.INCOMPATIBLE_VERSION:
            return self.workflow.version is not None and verb in ("start", "resume", "signal")
        return refusal in DOCUMENTED[verb]


class ProcessStore:
    """The store as one process reaches it."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def __getattr__(self, name: str) -> Any:
        def operation(*args: Any, **options: Any) -> Any:
            return self._perform(name, args, options)

        return operation

    def _perform(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        process, universe = self.process, self.process.universe
        if not process.dead:
            pause()
        if process.dead:
            raise Crash
        number, universe.operations = universe.operations, universe.operations + 1
        fault = universe.faults(number)
        if fault is not None:
            universe.struck.append((number, fault))
        reached = fault not in (Fault.CRASH_BEFORE, Fault.UNREACHED)
        result = universe.ledger.call(process.name, name, args, options) if reached else None
        universe.trace.append((current_task(), process.name, name, _brief(name, args, result), fault.value if fault else ""))
        self._strike(fault)
        return result

    def _strike(self, fault: Fault | None) -> None:
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            self.process.dead = True
            raise Crash
        if fault is not None:
            self.process.in_trouble = True
            raise UnreachableError(fault.value)


def _brief(name: str, args: tuple[Any, ...], result: Any) -> str:
    """What an operation wrote, in short."""
    if name == "get":
        return "found" if result is not None else "nothing"
    if name == "load":
        return f"{len(result or ())} records"
    written: Any = args[3] if name in ("initialize_if_absent", "write_if_unchanged") else ()
    return " ".join([*(key.partition("/")[2] or key for key in written), f"-> {result}"])


def _ending(call: Call) -> str:
    if call.refusal is not None:
        return f"refused: {call.refusal.value}"
    if call.error is not None:
        return repr(call.error)
    return str(call.value.execution.status.value) if isinstance(call.value, WorkflowState) else repr(call.value)
