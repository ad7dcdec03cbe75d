"""The contract suite where no server is needed."""

import fakeredis
import pytest

from bus import InMemorySignalBus, RedisSignalBus
from bus.testing import SignalBusContract


class TestInMemorySignalBus(SignalBusContract):
    @pytest.fixture
    def bus(self):
        return InMemorySignalBus()


class TestRedisSignalBusOnFakeRedis(SignalBusContract):
    @pytest.fixture
    def bus(self):
        return RedisSignalBus(fakeredis.FakeRedis())
