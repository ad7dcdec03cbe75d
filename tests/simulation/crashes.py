"""Faults at every single operation of one run, one universe for each, against the run that nothing went wrong in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.simulation.driver import Recovery, drive
from tests.simulation.universe import Fault, Process, Universe
from tests.simulation.world import without_numbers
from workflow import Workflow

__all__ = ["Definition", "Striking", "every_strike", "uninterrupted", "verdict"]

Definition = Callable[[Process], Workflow[Any]]


@dataclass(frozen=True, slots=True)
class Striking:
    """A fault plan: these faults, by the number of the operation."""

    strikes: tuple[tuple[int, Fault], ...] = ()

    def __call__(self, number: int) -> Fault | None:
        """See `FaultPlan`."""
        return dict(self.strikes).get(number)


def driven(define: Definition, recovery: Recovery, strikes: tuple[tuple[int, Fault], ...] = ()) -> Universe:
    """A universe in which the run was brought to its end in spite of the strikes."""
    universe = Universe(define, Striking(strikes))
    drive(universe, recovery)
    return universe


def uninterrupted(define: Definition, recovery: Recovery) -> Universe:
    """The same without any."""
    return driven(define, recovery)


def every_strike(length: int, faults: tuple[Fault, ...] = tuple(Fault)) -> Iterator[tuple[tuple[int, Fault], ...]]:
    """One strike at each of the operations."""
    return (((number, fault),) for number in range(length) for fault in faults)


def verdict(universe: Universe, expected: Universe) -> list[str]:
    """What is wrong with a universe in which something went wrong, compared with one in which nothing did."""
    found = list(universe.ledger.violations)
    if not universe.ledger.ended:
        return [*found, "no run was ever completed"]
    run_id, reference = universe.ledger.ended[-1], expected.ledger.ended[-1]
    final, wanted = (without_numbers(each.world.finals.get(run)) for each, run in ((universe, run_id), (expected, reference)))
    if final != wanted:
        found.append(f"the run ended with {final}, not with {wanted}")
    if universe.world.places(run_id) != expected.world.places(reference):
        found.append(f"the effects were {sorted(universe.world.places(run_id))}")
    if universe.world.repeated(run_id) > len(universe.struck):
        found.append(f"{universe.world.repeated(run_id)} effects were repeated after {len(universe.struck)} faults")
    return found
