"""The contract of a ledger on real servers and on a cluster."""

import pytest
import redis

from bus import RedisLedger
from bus.ledgers.testing import LedgerContract
from persistence.redis import connect

PREFIX = "{shop}:handled:"


class Effects:
    """Counts in keys that share the slot of the records."""

    def __init__(self, client):
        self.client = client

    def make(self, transaction, signal_id):
        transaction.incr(f"{{shop}}:effect:{signal_id}")

    def count(self, signal_id):
        return int(self.client.get(f"{{shop}}:effect:{signal_id}") or 0)


class TestRedisLedgerOnServers(LedgerContract):
    @pytest.fixture
    def client(self, server_url):
        with redis.Redis.from_url(server_url) as client:
            yield client

    @pytest.fixture
    def ledger(self, client):
        return RedisLedger(client, PREFIX)

    @pytest.fixture
    def effect(self, client):
        return Effects(client)


class TestRedisLedgerOnACluster(LedgerContract):
    @pytest.fixture
    def client(self, cluster):
        client = cluster.client()
        yield client
        client.close()

    @pytest.fixture
    def ledger(self, cluster):
        return RedisLedger(connect(cluster.url), PREFIX)

    @pytest.fixture
    def effect(self, client):
        return Effects(client)
