"""The contract suite on real servers."""

import pytest

from bus import open_bus
from bus.testing import SignalBusContract


class TestRedisSignalBusOnServers(SignalBusContract):
    @pytest.fixture
    def bus(self, server_url):
        return open_bus(server_url)
