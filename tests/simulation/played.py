"""One run of branches from its start to its end, the timing of its branches drawn from a seed, with faults on the way."""

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from tests.simulation.crashes import Definition, driven
from tests.simulation.driver import Recovery, drive
from tests.simulation.loops import staggered
from tests.simulation.scheduler import Chooser, Scheduler, in_process
from tests.simulation.universe import Fault, Process, Universe

__all__ = ["played", "undisturbed"]


@lru_cache
def undisturbed(define: Definition, recovery: Recovery) -> Universe:
    """The universe in which nothing goes wrong, and the branches come one after the other."""
    return driven(define, recovery)


def played(define: Definition, recovery: Recovery, seed: object, faults: Mapping[int, Fault] | None = None) -> Universe:
    """A universe in which a run was brought to its end in spite of these faults, by the number of the operation."""

    def aboard(process: Process) -> Any:
        in_process(lambda: process.dead)
        return define(process)

    dice = random.Random(f"{seed}")
    universe = Universe(aboard, (faults or {}).get)
    scheduler = Scheduler(_chosen_by(dice))
    scheduler.add("driver", lambda: drive(universe, recovery))
    with staggered(dice):
        ended = scheduler.run()
    for name, error in ended.items():
        universe.ledger.blame(f"{name} ended with {error!r}")
    return universe


def _chosen_by(dice: random.Random) -> Chooser:
    """Who goes on is drawn; some runs switch at every chance, others seldom."""
    restless = dice.choice((0.3, 0.7, 1.0))

    def choose(options: Sequence[str], stays: bool) -> int:
        return 0 if stays and dice.random() > restless else dice.randrange(len(options))

    return choose
