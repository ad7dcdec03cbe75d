"""What the cases stand on: the store that a suite gives them, and the words they share."""

import pytest

from persistence.contract import LogEntry, Persistence

__all__ = ["FENCE", "StoreCases", "data_of"]

FENCE = "fence"
"""The condition key of the cases."""


class StoreCases:
    """Cases over one store."""

    @pytest.fixture
    def store(self) -> Persistence:
        """The store under test, empty at the start of each test."""
        raise NotImplementedError("override the fixture `store` in your suite: return an empty store for each test")


def data_of(entries: list[LogEntry]) -> list[bytes]:
    """The data of log entries, in their order."""
    return [entry.data for entry in entries]
