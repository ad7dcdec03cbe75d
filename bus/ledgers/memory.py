"""The ledger of one process, for tests and for the in-memory bus: it forgets with the process, as that bus does."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

__all__ = ["InMemoryLedger"]


class InMemoryLedger:
    """`bus.ledgers.Ledger` in memory. The transaction is a list: append functions, which are called when it is committed."""

    def __init__(self) -> None:
        self._handled: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    @contextmanager
    def once(self, group: str, signal_id: str) -> Generator[list[Callable[[], Any]] | None]:
        """See `bus.ledgers.Ledger.once`. A function that raises when it is called leaves no record."""
        if (group, signal_id) in self._handled:
            yield None
            return
        effects: list[Callable[[], Any]] = []
        yield effects
        with self._lock:
            # Somebody else may have been faster: then these effects are there already.
            if (group, signal_id) not in self._handled:
                for effect in effects:
                    effect()
                self._handled.add((group, signal_id))
