"""The mesh's stores on real servers."""

import datetime as dt
import threading

import pytest
import redis

from mesh.heartbeats import RedisHeartbeatStore
from mesh.heartbeats.testing import HeartbeatStoreContract
from mesh.knowledge import RedisKnowledgeStore
from mesh.knowledge.testing import KnowledgeStoreContract


class TestRedisHeartbeatStore(HeartbeatStoreContract):
    @pytest.fixture
    def store(self, server_url):
        return RedisHeartbeatStore(redis.Redis.from_url(server_url))


class TestRedisKnowledgeStore(KnowledgeStoreContract):
    @pytest.fixture
    def store(self, server_url):
        return RedisKnowledgeStore(redis.Redis.from_url(server_url))


def test_now_is_what_the_server_says(server_url):
    client = redis.Redis.from_url(server_url)
    store = RedisHeartbeatStore(client)
    before = client.time()
    store.beat("a")
    store.beat("b", dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    after = client.time()
    low, high = (
        dt.datetime.fromtimestamp(seconds, dt.UTC) + dt.timedelta(microseconds=micro) for seconds, micro in (before, after)
    )
    assert all(low <= seen <= high for seen in store.all().values())
    assert len(store.all()) == 2


def test_concurrent_beats_keep_the_newest(server_url):
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def beat(offset):
        store = RedisHeartbeatStore(redis.Redis.from_url(server_url))
        for second in range(offset, 200, 4):
            store.beat("a", start + dt.timedelta(seconds=second))

    threads = [threading.Thread(target=beat, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert RedisHeartbeatStore(redis.Redis.from_url(server_url)).last_seen("a") == start + dt.timedelta(seconds=199)
