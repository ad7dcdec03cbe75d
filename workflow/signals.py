"""What the engine asks of a bus, of which it knows nothing else: where it stands."""

from collections.abc import Sequence
from typing import Protocol

__all__ = ["SignalPosition"]


class SignalPosition(Protocol):
    """Positions are texts that mean something to the bus alone."""

    def __call__(self) -> str:
        """The place behind everything published so far."""
        ...

    def latest(self, positions: Sequence[str]) -> str:
        """The place behind everything that lies before any of these."""
        ...
