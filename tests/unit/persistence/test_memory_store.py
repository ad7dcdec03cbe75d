"""The store in memory keeps the contract."""

import pytest

from persistence import InMemoryPersistence, Persistence
from persistence.testing import PersistenceContract


class TestInMemoryPersistence(PersistenceContract):
    @pytest.fixture
    def store(self) -> Persistence:
        return InMemoryPersistence()
