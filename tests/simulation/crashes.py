"""One run from its start to its end with faults on the way, and what must have come of it."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.simulation.driver import Recovery, drive
from tests.simulation.universe import Fault, Process, Universe
from tests.simulation.world import without_numbers
from workflow import Workflow

__all__ = ["Definition", "driven", "verdict"]

Definition = Callable[[Process], Workflow[Any]]


def driven(define: Definition, recovery: Recovery, faults: Mapping[int, Fault] | None = None) -> Universe:
    """A universe in which a run was brought to its end in spite of these faults, by the number of the operation."""
    universe = Universe(define, (faults or {}).get)
    drive(universe, recovery)
    return universe


def verdict(universe: Universe, expected: Universe, at_once: int = 1) -> list[str]:
    """What is wrong with a universe in which something went wrong, compared with one in which nothing did.

    ``at_once`` is how many effects may be under way when a fault strikes, and are made again.
    """
    found = list(universe.ledger.violations)
    if not universe.ledger.ended:
        return [*found, "no run was ever completed"]
    run_id, reference = universe.ledger.ended[-1], expected.ledger.ended[-1]
    final, wanted = (without_numbers(each.world.finals.get(run)) for each, run in ((universe, run_id), (expected, reference)))
    if final != wanted:
        found.append(f"the run ended with {final}, not with {wanted}")
    if universe.world.places(run_id) != expected.world.places(reference):
        found.append(f"the effects were {sorted(universe.world.places(run_id))}")
    if universe.world.repeated(run_id) > len(universe.struck) * at_once:
        found.append(f"{universe.world.repeated(run_id)} effects were repeated after {len(universe.struck)} faults")
    return found
