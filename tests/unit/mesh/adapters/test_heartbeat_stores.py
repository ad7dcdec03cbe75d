"""Heartbeat stores where no server is needed."""

import datetime as dt

import fakeredis
import pytest

from mesh.heartbeats import HeartbeatStoreError, InMemoryHeartbeatStore, RedisHeartbeatStore
from mesh.heartbeats.testing import HeartbeatStoreContract
from workflow.clock import ManualClock

NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


class TestInMemoryHeartbeatStore(HeartbeatStoreContract):
    @pytest.fixture
    def store(self):
        return InMemoryHeartbeatStore()


class TestRedisHeartbeatStoreOnFakeRedis(HeartbeatStoreContract):
    @pytest.fixture
    def store(self):
        return RedisHeartbeatStore(fakeredis.FakeRedis())


def test_the_given_clock_says_what_now_is():
    clock = ManualClock(NOW)
    store = InMemoryHeartbeatStore(clock)
    store.beat("a")
    store.beat("b", NOW + dt.timedelta(hours=1))
    assert store.all() == {"a": NOW, "b": NOW}
    clock.advance(5)
    store.beat("a")
    assert store.last_seen("a") == NOW + dt.timedelta(seconds=5)


def test_what_all_returns_is_a_copy():
    store = InMemoryHeartbeatStore()
    store.beat("a")
    store.all().clear()
    assert list(store.all()) == ["a"]


def test_two_prefixes_on_one_server_are_apart():
    client = fakeredis.FakeRedis()
    RedisHeartbeatStore(client, "one:").beat("a")
    assert RedisHeartbeatStore(client, "other:").all() == {}
    assert [key.decode() for key in client.scan_iter()] == ["one:seen"]


def test_a_corrupt_moment_is_an_error_that_names_its_key():
    client = fakeredis.FakeRedis()
    for value in ("soon", "9" * 30):
        client.hset("jarvis:heartbeats:seen", "a", value)
        with pytest.raises(HeartbeatStoreError, match="'a' in 'jarvis:heartbeats:seen' is corrupt"):
            RedisHeartbeatStore(client).last_seen("a")
