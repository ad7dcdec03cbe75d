"""The contract of wake-ups: hints like those to workers. The store remembers; a wake-up that is lost costs some seconds."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

__all__ = ["Wake", "WakeUps"]

Wake = Callable[[], object]
"""Called in any thread when a run is to be looked at: be quick, and do not block. It may be called for nothing."""


class WakeUps(Protocol):
    """Somebody who wakes those that wait for a run."""

    look_every: float
    """Seconds after which a waiter looks by itself: a wake-up may be lost."""

    def tell(self, workflow_id: str, run_id: str) -> None:
        """The run has come to an end or to a stop, and the store shows it. Never raises for trouble with a server."""
        ...

    def listening(self, workflow_id: str, run_id: str, wake: Wake) -> AbstractContextManager[None]:
        """Have ``wake`` called for the run until the end of the block. Asks no server, and does not block.

        Look at the run once inside: what was told before the block is not told again.
        """
        ...
