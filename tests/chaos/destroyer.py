"""The agent of destruction: one fault after the other, each kind as often as the others, in an order drawn from a seed.

While it works, whatever ends is started again. When it rests, every fault has been lifted.
"""

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.faults import NEED_THE_SERVER, STOP_EVERYBODY, TAKE_THE_SERVER_AWAY, Fault, Relief
from tests.chaos.field import Field

__all__ = ["Destroyer", "Struck"]

GAP = (0.2, 0.9)
"""Seconds between faults."""


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault that struck processes, at a Unix second."""

    kind: str
    at: float
    pids: tuple[int, ...]


class Destroyer:
    """Strikes at a field with faults of these kinds."""

    def __init__(self, field: Field, faults: Sequence[Fault], chance: random.Random) -> None:
        self._kinds = faults
        self._field = field
        self._chance = chance
        self._deck: list[Fault] = []
        self._lasting: list[tuple[float, Fault, Relief]] = []
        self._next = 0.0
        self.faults: Counter[str] = Counter()
        self.struck: list[Struck] = []
        self.returns: list[float] = []
        """When everybody could go on after a fault that had stopped them all, as Unix seconds."""
        self.trace: list[str] = []
        """One line for each fault, for people."""
        self.last = 0.0
        """When the last fault was over, as a Unix second."""

    @property
    def has_done_all(self) -> bool:
        """Whether every kind of fault has happened."""
        return all(self.faults[fault.__name__] for fault in self._kinds)

    def work(self) -> None:
        """Do what is due: lift, keep the processes up, strike."""
        self._lift(time.monotonic())
        self._field.troop.keep()
        if time.monotonic() >= self._next:
            self._strike()
            self._next = time.monotonic() + self._chance.uniform(*GAP)

    def rest(self) -> None:
        """Lift everything."""
        self._lift(float("inf"))
        self._field.troop.keep()

    def _strike(self) -> None:
        if not set(self._deck) - NEED_THE_SERVER:
            self._deck += self._chance.sample(self._kinds, len(self._kinds))
        away = any(fault in TAKE_THE_SERVER_AWAY for _, fault, _ in self._lasting)
        place = next(place for place, fault in enumerate(self._deck) if not (away and fault in NEED_THE_SERVER))
        fault, at = self._deck.pop(place), time.time()
        relief = fault(self._field, self._chance)
        self.faults[fault.__name__] += 1
        lasts = f" for {relief.after:.1f} s" if relief.lift is not None else ""
        self.trace.append(f"{time.strftime('%H:%M:%S', time.gmtime(at))} {fault.__name__}{lasts} {relief.hit or ''}")
        if relief.hit:
            self.struck.append(Struck(fault.__name__, at, relief.hit))
        if relief.lift is None:
            self._over(fault)
        else:
            self._lasting.append((time.monotonic() + relief.after, fault, relief))

    def _lift(self, now: float) -> None:
        over = [lasting for lasting in self._lasting if lasting[0] <= now]
        self._lasting = [lasting for lasting in self._lasting if lasting[0] > now]
        for _, fault, relief in over:
            if relief.lift is not None:
                relief.lift()
                self._over(fault)

    def _over(self, fault: Fault) -> None:
        self.last = time.time()
        if fault in STOP_EVERYBODY:
            self.returns.append(self.last)
