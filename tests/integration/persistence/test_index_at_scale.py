"""The index among 100,000 partitions, on a real server."""

import pytest

from persistence import Persistence, open_persistence
from persistence.testing import PersistenceScaleContract


class TestRedisAtScale(PersistenceScaleContract):
    @pytest.fixture
    def store(self, redis_url: str) -> Persistence:
        return open_persistence(redis_url)
