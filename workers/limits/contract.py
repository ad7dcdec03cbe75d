"""The contract of slots: a counting semaphore whose permits are leases, so that a holder that dies gives its own back."""

from collections.abc import Mapping
from typing import Protocol

__all__ = ["Slots"]


class Slots(Protocol):
    """Slots of named limits. Times are in seconds, by the server's clock where there is one.

    A holder is called ``run/execution``. The executions of one run share its slot, which is free when each has given it back:
    so whoever takes over from a worker that died need not wait for that one's lease, and whoever was refused the run, or wakes
    up late, gives back nothing but its own.
    """

    def take(self, limits: Mapping[str, int], holder: str, lease: float) -> float | None:
        """Take one slot of each limit (name to number), or none at all. Taking again extends what the holder has.

        Returns None when taken, otherwise in how many seconds the next lease ends: no slot is certain to be free sooner.
        """
        ...

    def give_back(self, limits: Mapping[str, int], holder: str) -> None:
        """Give the holder's slots back. What it has not is no error."""
        ...
