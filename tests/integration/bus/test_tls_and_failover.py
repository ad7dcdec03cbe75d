"""The bus over TLS, and a consumer whose primary dies."""

import pytest

from bus import BusError, SignalConsumer, open_bus
from bus.testing import SignalBusContract, eventually


class TestBusOverTls(SignalBusContract):
    @pytest.fixture
    def bus(self, tls_server):
        return open_bus(tls_server.url)


def test_a_consumer_survives_the_failover_of_its_primary(own_sentinels):
    bus, seen = open_bus(own_sentinels.url), []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id))
    bus.publish("before", "fact", {})
    assert consumer.drain() == 1
    assert own_sentinels.primary.asks("WAIT", 1, 10_000) >= 1
    own_sentinels.primary.kill()
    eventually(lambda: succeeds(lambda: bus.publish("after", "fact", {})), 30)
    eventually(lambda: succeeds(consumer.drain) and seen == ["before", "after"], 30)


def succeeds(call):
    try:
        call()
    except BusError:
        return False
    return True
