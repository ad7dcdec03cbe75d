"""What a run has been through since it last moved on, and what a retry policy makes of its next failure.

Both are values. The counts live in control, so that whoever takes the run next knows them; a committed step clears them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

from workflow.errors import WorkflowError

__all__ = ["NO_TRIALS", "RetryPolicy", "Trials", "is_interruption"]

MAX_INTERRUPTIONS = 20
"""Segments stopped from outside, without a committed step between, after which a run is not tried again by itself."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Failures and takeovers since the last committed step. ``since`` is the Unix second of the first such failure."""

    failures: int = 0
    takeovers: int = 0
    since: int | None = None

    def with_failure(self, now: int) -> Self:
        """After one more failure."""
        return replace(self, failures=self.failures + 1, since=now if self.since is None else self.since)

    def with_takeover(self) -> Self:
        """After one more worker that was gone without a word."""
        return replace(self, takeovers=self.takeovers + 1)

    def without_next_takeover(self) -> Self:
        """After a lease was given back: the takeover that follows is no loss."""
        return replace(self, takeovers=self.takeovers - 1)

    def to_record(self) -> list[int | None]:
        """The stored shape."""
        return [self.failures, self.takeovers, self.since]

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """The value behind a stored shape. Raises TypeError or ValueError for any other shape."""
        failures, takeovers, since = record
        if not all(isinstance(count, int) for count in (failures, takeovers)) or not isinstance(since, int | None):
            raise TypeError(f"trials expected, not {record!r}")
        return cls(failures, takeovers, since)


NO_TRIALS = Trials()
"""Those of a run that has just moved on."""


def is_interruption(error: BaseException) -> bool:
    """Whether a segment was ended from outside. A node that calls ``sys.exit()`` has failed."""
    return not isinstance(error, Exception | SystemExit)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a failed run is tried again by itself, and when. Durations are in seconds.

    The n-th delay is ``first_delay * factor ** (n - 1)``, at most ``max_delay``, shortened by up to ``jitter`` of itself so
    that many runs which failed together do not come back together. A committed step begins the count anew.
    """

    attempts: int = 5
    """Tries of one step in all, the first included."""
    first_delay: float = 1
    factor: float = 2
    max_delay: float = 300
    jitter: float = 0.5
    total: float | None = None
    """Seconds after the first failure in which a further try may begin."""
    permanent: tuple[type[BaseException], ...] = ()
    """Errors that no retry would help; so are those whose ``permanent`` is true, the engine's own for instance."""

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first_delay < 0 or self.factor < 1 or self.max_delay < 0 or not 0 <= self.jitter <= 1:
            raise WorkflowError(
                f"{self} cannot be followed: attempts and factor are 1 or more, delays 0 or more, jitter from 0 to 1"
            )

    def next_try(
        self, error: BaseException, trials: Trials, now: float, *, chance: Callable[[], float] = random.random
    ) -> float | None:
        """The Unix time of the next try, or None when there is to be none. ``trials`` include this failure.

        What ends a node from outside (Ctrl-C, a worker that stops) is no failure of its own: it is tried again at once.
        """
        if is_interruption(error):
            return now if trials.takeovers <= MAX_INTERRUPTIONS else None
        if isinstance(error, self.permanent) or getattr(error, "permanent", False) is True:
            return None
        if trials.failures >= self.attempts:
            return None
        at = now + self._delay(trials.failures, chance())
        late = self.total is not None and trials.since is not None and at > trials.since + self.total
        return None if late else at

    def _delay(self, failures: int, chance: float) -> float:
        # The power of a large count would not fit a float.
        longest = min(self.max_delay, self.first_delay * self.factor ** min(failures - 1, 64))
        return longest * (1 - self.jitter * chance)
