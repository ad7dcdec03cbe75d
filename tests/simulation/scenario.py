"""A scenario: where a run stands, who then acts on it at the same time, and what must have come of it.

To add one, write a file in `scenarios/` with a list ``SCENARIOS`` and name it in `scenarios/catalogue.py`. A scenario has

- ``define``: makes the definition for one process (`journey`, `desk`, `errand`, or one of your own);
- ``prepare``: brings the run to where the scene begins, before anybody contends, without faults;
- ``actors``: each a name and a script; a script acts through a process of its own: ``process.call(verb, action)`` calls the
  engine and checks that it ends in a documented way, and every store operation in it may be interleaved with all others;
- ``check``: yields what is wrong at the end, beyond the rules that always hold (`rules`, `ledger`, `world`);
- ``recovery``: how whoever comes afterwards brings the run to its end, without faults, so that nothing may be stuck.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from persistence import UnreachableError
from tests.simulation.crashes import Definition, driven
from tests.simulation.driver import Recovery, drive
from tests.simulation.scheduler import Chooser, Crash, Scheduler, in_process, pause
from tests.simulation.universe import LEASE, FaultPlan, Process, Universe, no_faults
from tests.simulation.world import without_numbers
from workflow import ExecutionRequest
from workflow.store import RunStore

__all__ = ["Actor", "Finding", "Scenario", "Script", "act", "nothing_more", "reference", "renewing", "time_passes"]

Script = Callable[[Process], None]


def nothing_more(universe: Universe) -> Iterable[str]:
    """No check beyond the rules that always hold."""
    return ()


def untouched(universe: Universe) -> None:
    """The scene begins without a run."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts. ``aside`` names the actor whose process this one lives in; otherwise it has its own."""

    name: str
    script: Script
    aside: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A schedule that broke a rule: what, and everything needed to see it again."""

    scenario: str
    what: list[str]
    schedule: list[str]
    lines: list[str]

    def __str__(self) -> str:
        told = "\n".join(f"  {sentence}" for sentence in self.what)
        return f"scenario {self.scenario!r} broke:\n{told}\nschedule: {' > '.join(self.schedule)}\n" + "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scene. See the module."""

    name: str
    define: Definition
    actors: tuple[Actor, ...]
    prepare: Callable[[Universe], None] = untouched
    check: Callable[[Universe], Iterable[str]] = nothing_more
    recovery: Recovery = Recovery.RESUME
    same_end: bool = True
    """Whether the last run ends in the state of a run that nobody contended for; not so where time may answer instead."""
    switches: int | None = 1
    """How often a walk takes the baton from an actor that could go on, in the short form; None for all interleavings."""
    restarts: int = 1
    """How often an actor whose process dies begins again in a new one."""

    def play(self, choose: Chooser, faults: FaultPlan = no_faults) -> Finding | None:
        """Play the scene once. What was wrong, or None."""
        universe = Universe(self.define)
        self.prepare(universe)
        universe.faults, universe.operations = faults, 0
        scheduler = Scheduler(choose)
        self._enter(universe, scheduler)
        for name, error in scheduler.run().items():
            universe.ledger.blame(f"{name} ended with {error!r}")
        universe.faults = no_faults
        drive(universe, self.recovery)
        wrong = [*universe.ledger.violations, *self._broken_end(universe), *self.check(universe)]
        return Finding(self.name, wrong, scheduler.schedule, universe.lines()) if wrong else None

    def _broken_end(self, universe: Universe) -> Iterable[str]:
        expected = reference(self.define)
        if not universe.ledger.ended or not expected.ledger.ended:
            yield "no run was ever completed"
            return
        run_id, undisturbed = universe.ledger.ended[-1], expected.ledger.ended[-1]
        if universe.world.places(run_id) != expected.world.places(undisturbed):
            yield f"the effects of the last run were {sorted(universe.world.places(run_id))}"
        final, wanted = universe.world.finals.get(run_id), expected.world.finals.get(undisturbed)
        if self.same_end and without_numbers(final) != without_numbers(wanted):
            yield f"the last run ended with {final}, not with {wanted}"

    def _enter(self, universe: Universe, scheduler: Scheduler) -> None:
        processes: dict[str, Process] = {}
        for actor in self.actors:
            processes[actor.name] = process = processes[actor.aside] if actor.aside else universe.process(actor.name)
            scheduler.add(actor.name, lambda actor=actor, process=process: self._live(actor, process))

    def _live(self, actor: Actor, process: Process) -> None:
        for _ in range(self.restarts + 1):
            in_process(lambda process=process: process.dead)
            try:
                actor.script(process)
            except Crash:
                process = process.universe.process(actor.name)
            else:
                return


@lru_cache
def reference(define: Definition) -> Universe:
    """The universe in which nobody contends for the run."""
    return driven(define, Recovery.RUN)


def act(verb: str, request: ExecutionRequest | None = None) -> Script:
    """A script that runs the workflow once with a request."""

    def script(process: Process) -> None:
        process.call(verb, lambda: process.workflow.run(request))

    return script


def time_passes(times: int = 1, seconds: float = LEASE + 1, name: str = "clock") -> Actor:
    """The clock: it moves on a few times, at any moments."""

    def script(process: Process) -> None:
        for _ in range(times):
            pause()
            process.universe.advance(seconds)

    return Actor(name, script)


def renewing(whose: str, times: int = 1) -> Actor:
    """The thread that renews the leases of one actor's process."""

    def script(process: Process) -> None:
        for _ in range(times):
            pause()
            for store in list(process.leases):
                _renew(process, store)

    return Actor(f"renewer of {whose}", script, aside=whose)


def _renew(process: Process, store: RunStore) -> None:
    """As the renewer does: trouble with the store is logged and tried again later."""
    try:
        store.renew()
    except UnreachableError:
        if not process.in_trouble:
            process.universe.ledger.blame("a renewal says that the store is in trouble, and it is not")
