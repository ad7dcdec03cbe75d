"""What becomes of a signal whose handling failed: pure decisions."""

from dataclasses import dataclass

from bus.errors import BusError

__all__ = ["DEAD_LIMIT", "MAX_DELIVERIES", "Backoff", "is_last", "told"]

MAX_DELIVERIES = 10
"""Deliveries of one signal to one group before it becomes a dead letter (with the usual backoff: after some nine minutes)."""
DEAD_LIMIT = 10_000
"""Dead letters that a group keeps of one stream, about; the oldest go first."""
ERROR_LIMIT = 1_000
"""Characters of an error that a dead letter keeps."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds from a failure to the next try: ``first``, then ``factor`` times more with every failure, up to ``limit``."""

    first: float = 1.0
    factor: float = 2.0
    limit: float = 300.0

    def __post_init__(self) -> None:
        if self.first < 0 or self.factor < 1 or self.limit < self.first:
            raise BusError(f"{self} never waits longer: use first >= 0, factor >= 1, limit >= first")

    def __call__(self, attempt: int) -> float:
        """The wait after this attempt, the first being 1."""
        # A power past any limit is not computed: it would overflow.
        return min(self.first * self.factor ** min(attempt - 1, 64), self.limit)


def is_last(attempt: int, max_deliveries: int) -> bool:
    """Whether a failure at this attempt is the end."""
    return attempt >= max_deliveries


def told(error: Exception) -> str:
    """The error as a dead letter keeps it: its type and its words, in bounds, and in characters that can be stored."""
    text = f"{type(error).__name__}: {error}"[:ERROR_LIMIT]
    return text.encode(errors="backslashreplace").decode()
