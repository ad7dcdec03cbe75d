"""What is forgotten of the archive: runs whose time is over, and the oldest of too many, a bounded part at a time."""

import time
from collections.abc import Callable

from persistence import IndexEntry
from workers.history.archive import RunArchive

__all__ = ["BATCH", "TIDY_EVERY", "Pruner"]

BATCH = 200
"""Runs that are forgotten at once at most."""
COUNTED = 1000
"""Runs that are counted at once."""
TIDY_EVERY = 10.0
"""Seconds between two looks."""


class Pruner:
    """Looks at the archive from time to time. ``now`` gives Unix seconds.

    No store counts its entries. So they are walked through from the newest on, one page at a time, and those behind the
    number that is allowed are forgotten; runs that begin during a walk are counted by the next one.
    """

    def __init__(self, archive: RunArchive, *, now: Callable[[], float] = time.time) -> None:
        self._archive = archive
        self._now = now
        self._last: float | None = None
        self._counted = 0
        self._reached: IndexEntry | None = None

    def tidy(self) -> int:
        """Forget what is over, unless that was done a moment ago. Returns how many runs were forgotten."""
        now = self._now()
        if self._last is not None and 0 <= now - self._last < TIDY_EVERY:
            return 0
        self._last = now
        outdated = sum(self._archive.forget(entry) for entry in self._archive.due(now, BATCH))
        return outdated + self._beyond_number()

    def _beyond_number(self) -> int:
        allowed = self._archive.max_runs - self._counted
        page = self._archive.page(self._reached, BATCH if allowed <= 0 else min(COUNTED, allowed))
        if not page:
            self._counted, self._reached = 0, None
            return 0
        if allowed > 0:
            self._counted, self._reached = self._counted + len(page), page[-1]
            return 0
        return sum(self._archive.forget(entry) for entry in page)
