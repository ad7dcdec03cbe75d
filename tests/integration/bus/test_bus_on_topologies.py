"""The bus on a cluster and behind Sentinels: all its keys share a slot, so that one script may write them."""

import pytest

from bus import open_bus
from bus.testing import SignalBusContract


class TestBusOnCluster(SignalBusContract):
    @pytest.fixture
    def bus(self, cluster):
        return open_bus(cluster.url)


class TestBusBehindSentinels(SignalBusContract):
    @pytest.fixture
    def bus(self, sentinels):
        return open_bus(sentinels.url)
