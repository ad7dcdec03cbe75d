"""The Redis store keeps the contract on `fakeredis`, which runs the same Lua without a server."""

import fakeredis
import pytest

from persistence import IndexEntry, Persistence, RedisPersistence
from persistence.redis.keys import Keys, shard_of
from persistence.testing import PersistenceContract


class TestRedisPersistenceOnFakeredis(PersistenceContract):
    @pytest.fixture
    def store(self) -> Persistence:
        return RedisPersistence(fakeredis.FakeRedis(server=fakeredis.FakeServer()))


DAMAGED = [
    b"",
    b"no json",
    b"[]",
    b"7",
    b'"text"',
    b"{}",
    b'{"n": "name", "s": null}',
    b'{"n": "\\ud800", "s": "s", "t": null}',
]
"""What may stand where the JSON of an entry should; the last one was left by a release that did not refuse such text."""


@pytest.fixture
def client() -> fakeredis.FakeRedis:
    return fakeredis.FakeRedis(server=fakeredis.FakeServer())


def damage(client: fakeredis.FakeRedis, data: bytes) -> None:
    client.hset(Keys("jarvis:workflow:", shard_of("p")).entries, "p", data)


@pytest.mark.parametrize("data", DAMAGED)
def test_an_entry_that_cannot_be_read_is_replaced_by_the_next_write(client, data):
    store = RedisPersistence(client)
    damage(client, data)
    assert store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p", 1.0, "name"))
    assert store.find(name="name") == store.due(2.0) == [IndexEntry("p", 1.0, "name")]
    damage(client, data)
    assert store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, index=IndexEntry("p", 3.0, "name"))
    assert store.find(name="name") == [IndexEntry("p", 3.0, "name")]


@pytest.mark.parametrize("data", DAMAGED)
def test_an_entry_that_cannot_be_read_goes_with_its_partition(client, data):
    store = RedisPersistence(client)
    store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p", 1.0))
    damage(client, data)
    assert store.delete_if_unchanged("p", "f", b"1")
    assert store.entry("p") is None
    assert store.due(2.0) == []


class Odd(float):
    """A number that calls itself otherwise, as those of some libraries do."""

    def __repr__(self) -> str:
        return f"Odd({float(self)})"


def test_a_due_time_of_another_kind_of_number_is_written_as_a_number(client):
    store = RedisPersistence(client)
    assert store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p", Odd(1.5)))
    assert store.due(1.5) == [IndexEntry("p", 1.5)]
