"""How much chaos: a short form by default, a long one by environment variable.

variable        meaning
CHAOS_ROUNDS    the long form: so many rounds of 300 errands, each with a seed drawn anew and printed
CHAOS_SEED      this seed alone, to see again what a round has shown; with CHAOS_ROUNDS=1 if that was one of the long form

A seed gives the same errands and the same faults in the same order; what the processes do meanwhile is theirs.
"""

import os
import random
from dataclasses import dataclass

from tests.chaos.faults import FAULTS, LONG_FAULTS, Fault

__all__ = ["Effort", "effort"]

SEEDS = (20261201,)
"""The seeds of the short form."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What to go through. ``pace`` is in seconds from one start to the next."""

    seeds: tuple[int, ...]
    errands: int
    pace: float
    roles: tuple[str, ...]
    faults: tuple[Fault, ...]
    settle: float
    """Seconds in which everything settles once the faults are over: the longest wait between hints, and a lease."""


SHORT_ROLES = ("prefork", "threads", "beat", "beat", "sweeper", "sweeper", "consumers", "consumers")
LONG_ROLES = ("prefork", "prefork", "threads", "threads", "solo", *SHORT_ROLES[2:], "sweeper")


def effort() -> Effort:
    """What the environment asks for."""
    seed, rounds = os.environ.get("CHAOS_SEED"), int(os.environ.get("CHAOS_ROUNDS", "0"))
    drawn = random.SystemRandom()
    seeds = (int(seed),) if seed else tuple(drawn.randrange(10**9) for _ in range(rounds)) or SEEDS
    if rounds:
        return Effort(seeds, 300, 0.25, LONG_ROLES, LONG_FAULTS, 120)
    return Effort(seeds, 50, 0.2, SHORT_ROLES, FAULTS, 90)
