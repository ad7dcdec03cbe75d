"""Ways through the schedules of a scenario: all of them up to a bound, or random ones from a seed.

A chooser numbers the options so that 0 always means "the task that runs now goes on". `interleavings` walks the tree of choices
depth first. `random_schedule` draws choices and faults from one seed, so that a seed is all that is needed to see it again.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.scenario import Finding, Scenario
from tests.simulation.scheduler import Chooser
from tests.simulation.universe import Fault, FaultPlan, no_faults

__all__ = ["Walk", "interleavings", "random_schedule", "replayed"]


@dataclass(slots=True)
class Path:
    """A chooser that follows ``prefix``, then stays with whoever runs, and writes down what there was to choose."""

    prefix: list[int]
    made: list[tuple[int, int, bool]] = field(default_factory=list[tuple[int, int, bool]])
    """(choice, number of options, whether 0 meant to stay) for each decision."""

    def __call__(self, options: Sequence[str], stays: bool) -> int:
        """See `Chooser`."""
        place = len(self.made)
        choice = self.prefix[place] if place < len(self.prefix) else 0
        self.made.append((choice, len(options), stays))
        return choice

    def next_prefix(self, switches: int | None) -> list[int] | None:
        """The next path of the tree, with at most so many switches away from a task that could have gone on."""
        left = len(self.made)
        while left:
            left -= 1
            choice, options, stays = self.made[left]
            before = sum(1 for made, _, stayed in self.made[:left] if stayed and made)
            affordable = switches is None or not stays or before < switches
            if choice + 1 < options and affordable:
                return [*(made for made, _, _ in self.made[:left]), choice + 1]
        return None


@dataclass(slots=True)
class Walk:
    """What became of a walk through interleavings."""

    schedules: int = 0
    longest: int = 0
    """Decisions in the longest schedule."""
    complete: bool = False
    """Whether every schedule within the bound was played."""


def interleavings(
    scenario: Scenario, switches: int | None, faults: FaultPlan = no_faults, limit: int | None = None
) -> tuple[Walk, Finding | None]:
    """Play every schedule that takes the baton at most ``switches`` times from a task that could go on (None: all schedules).

    Ends with the first finding, or after ``limit`` schedules.
    """
    walk = Walk()
    following: list[int] | None = []
    while following is not None and (limit is None or walk.schedules < limit):
        path = Path(following)
        finding = scenario.play(path, faults)
        walk.schedules += 1
        walk.longest = max(walk.longest, len(path.made))
        if finding is not None:
            return walk, finding
        following = path.next_prefix(switches)
    walk.complete = following is None
    return walk, None


def random_schedule(scenario: Scenario, seed: int) -> Finding | None:
    """One schedule drawn from a seed: who goes on, and what befalls which operation."""
    # The name is part of the seed, so that the same number means other choices in another scenario.
    dice = random.Random(f"{scenario.name}/{seed}")
    return scenario.play(_drawn_choice(dice), _drawn_fault(dice))


def _drawn_choice(dice: random.Random) -> Chooser:
    """Some schedules switch at every operation, others seldom."""
    restless = dice.choice((0.1, 0.3, 0.6, 1.0))

    def choose(options: Sequence[str], stays: bool) -> int:
        if stays and dice.random() > restless:
            return 0
        return dice.randrange(len(options))

    return choose


def _drawn_fault(dice: random.Random) -> FaultPlan:
    """A third of the schedules have no fault, the others one in a while."""
    rate = dice.choice((0.0, 0.02, 0.08))
    kinds = tuple(Fault)

    def strike(number: int) -> Fault | None:
        return dice.choice(kinds) if dice.random() < rate else None

    return strike


def replayed(scenario: Scenario, schedule: str) -> Finding | None:
    """A walked schedule again, as a finding prints it: the names of those who went on, separated by ``" > "``."""
    names = iter(schedule.split(" > "))

    def choose(options: Sequence[str], stays: bool) -> int:
        name = next(names, options[0])
        return options.index(name) if name in options else 0

    return scenario.play(choose)
