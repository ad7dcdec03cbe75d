"""What becomes of a signal whose handling failed: pure decisions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bus.contract import EVERY_TOPIC, DeadLetter
from bus.errors import BusError
from bus.topics import check_patterns, matches_any

__all__ = ["DEAD_LIMIT", "MAX_DELIVERIES", "Backoff", "chosen", "is_last", "told"]

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


def chosen(
    letters: Iterable[DeadLetter],
    *,
    topics: Sequence[str] = EVERY_TOPIC,
    error: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[DeadLetter]:
    """The dead letters of these topics whose error holds these words, given up from one time on and before another."""
    patterns = check_patterns(topics)
    return [
        letter
        for letter in letters
        if matches_any(patterns, letter.signal.topic)
        and (error is None or error in letter.error)
        and (since is None or letter.died_at >= since)
        and (until is None or letter.died_at < until)
    ]


def is_last(attempt: int, max_deliveries: int) -> bool:
    """Whether a failure at this attempt is the end."""
    return attempt >= max_deliveries


def told(error: Exception) -> str:
    """The error as a dead letter keeps it: its type and its words, in bounds, and in characters that can be stored."""
    text = f"{type(error).__name__}: {error}"[:ERROR_LIMIT]
    return text.encode(errors="backslashreplace").decode()
