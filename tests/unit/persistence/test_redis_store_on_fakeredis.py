"""The Redis store keeps the contract on `fakeredis`, which runs the same Lua without a server."""

import fakeredis
import pytest

from persistence import Persistence, RedisPersistence
from persistence.testing import PersistenceContract


class TestRedisPersistenceOnFakeredis(PersistenceContract):
    @pytest.fixture
    def store(self) -> Persistence:
        return RedisPersistence(fakeredis.FakeRedis(server=fakeredis.FakeServer()))
