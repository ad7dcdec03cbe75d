"""The Redis store on every server program of this machine: the contract, its keys, and what it costs."""

from collections.abc import Callable
from functools import partial

import pytest
import redis

from persistence import IndexEntry, Persistence, PersistenceError, RedisPersistence, open_persistence
from persistence.redis import connect
from persistence.redis.keys import Keys, shard_of
from persistence.testing import SharedPersistenceContract


class TestRedisPersistence(SharedPersistenceContract):
    @pytest.fixture
    def opener(self, server_url: str) -> Callable[[], Persistence]:
        return partial(open_persistence, server_url)

    @pytest.fixture
    def store(self, opener: Callable[[], Persistence]) -> Persistence:
        return opener()


ENTRY = IndexEntry("p", 1.0, "name", "status", "tag")
APPEND = [("log", b"told")]


class CountingConnection(redis.UnixDomainSocketConnection):
    """Counts what is sent: a command, or a pipeline as one."""

    sent = 0

    def send_packed_command(self, command, check_health=True):
        CountingConnection.sent += 1
        super().send_packed_command(command, check_health)


def trips(call: Callable[[], object]) -> int:
    """Round trips of a call that takes effect."""
    before = CountingConnection.sent
    assert call() is not False
    return CountingConnection.sent - before


def test_every_intent_and_every_read_of_a_partition_is_one_round_trip(server_url):
    store = RedisPersistence(connect(server_url, connection_class=CountingConnection))
    for _ in range(2):  # the server learns the scripts in the first turn
        store.initialize_if_absent("p", "f", b"1")
        store.write_if_unchanged("p", "f", b"1", {})
        store.delete_if_unchanged("p", "f", b"1")
    many = {f"{place}": b"1" for place in range(100)}
    assert trips(lambda: store.initialize_if_absent("p", "f", b"1", many, ENTRY, APPEND)) == 1
    assert trips(lambda: store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, many, ENTRY, APPEND)) == 1
    assert trips(lambda: store.get("p", "f")) == 1
    assert trips(lambda: store.load("p")) == 1
    assert trips(lambda: store.read_log("log")) == 1
    assert trips(lambda: store.due(0.0)) == 1
    assert trips(lambda: store.due(1.0)) == 2
    assert trips(store.find) == 2
    assert trips(lambda: store.delete_if_unchanged("p", "f", b"2", APPEND)) == 1


def test_every_key_has_the_prefix_and_no_time_to_live(server_url):
    store = RedisPersistence(connect(server_url), prefix="mine:")
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY, APPEND)
    keys = Keys("mine:", shard_of("p"))
    expected = {keys.partition("p"), keys.due, keys.entries, keys.lookup, keys.log("log")}
    with redis.Redis.from_url(server_url, decode_responses=True) as client:
        assert set(client.keys("*")) == expected
        assert {client.ttl(key) for key in expected} == {-1}
        assert client.hgetall(f"mine:{{{shard_of('p')}}}:p:p") == {"f": "1", "a": "1"}


def test_nothing_is_left_of_a_deleted_partition_but_its_log(server_url):
    store = RedisPersistence(connect(server_url))
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY, APPEND)
    store.delete_if_unchanged("p", "f", b"1")
    with redis.Redis.from_url(server_url) as client:
        assert [client.type(key) for key in client.keys("*")] == [b"stream"]


def test_two_prefixes_are_two_stores(server_url):
    one, other = (RedisPersistence(connect(server_url), prefix=prefix) for prefix in ("one:", "other:"))
    one.initialize_if_absent("p", "f", b"1", {}, ENTRY, APPEND)
    assert other.load("p") == {}
    assert other.due(9.0) == other.find() == other.read_log("log") == []


def test_scripts_that_the_server_forgot_are_loaded_again(server_url):
    store = RedisPersistence(connect(server_url))
    with redis.Redis.from_url(server_url) as client:
        for _ in range(2):
            client.script_flush()
            assert store.initialize_if_absent("p", "f", b"1", append=APPEND)
            client.script_flush()
            assert store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, append=APPEND)
            client.script_flush()
            assert store.delete_if_unchanged("p", "f", b"2", APPEND)
    assert len(store.read_log("log")) == 6


def test_a_log_keeps_its_newest_entries_up_to_about_its_limit(server_url):
    store = RedisPersistence(connect(server_url), log_limit=100)
    store.initialize_if_absent("p", "f", b"1", append=[("log", b"%d" % place) for place in range(1000)])
    kept = [entry.data for entry in store.read_log("log", limit=1000)]
    assert kept == [b"%d" % place for place in range(1000 - len(kept), 1000)]
    assert 100 <= len(kept) < 400


@pytest.mark.parametrize("taken", ["partition", "due", "entries", "lookup", "log"])
def test_a_key_of_another_program_is_an_error_and_nothing_is_written(server_url, taken):
    store = RedisPersistence(connect(server_url))
    keys = Keys("jarvis:workflow:", shard_of("p"))
    names = {"due": keys.due, "entries": keys.entries, "lookup": keys.lookup, "log": keys.log("log")}
    with redis.Redis.from_url(server_url) as client:
        client.set(names.get(taken, keys.partition("p")), "theirs")
        with pytest.raises(PersistenceError, match=r"another program is in the way .*: use another prefix or database"):
            store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY, APPEND)
        assert len(client.keys("*")) == 1


@pytest.mark.parametrize("taken", ["due", "entries", "lookup", "log"])
def test_a_key_of_another_program_that_came_later_leaves_a_partition_as_it_was(server_url, taken):
    store = RedisPersistence(connect(server_url))
    keys = Keys("jarvis:workflow:", shard_of("p"))
    names = {"due": keys.due, "entries": keys.entries, "lookup": keys.lookup, "log": keys.log("log")}
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY)
    with redis.Redis.from_url(server_url) as client:
        client.delete(names[taken])
        client.set(names[taken], "theirs")
        with pytest.raises(PersistenceError, match="another program"):
            store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, ["a"], ENTRY, APPEND)
        with pytest.raises(PersistenceError, match="another program"):
            store.delete_if_unchanged("p", "f", b"1", APPEND)
        assert client.get(names[taken]) == b"theirs"
    assert store.load("p") == {"f": b"1", "a": b"1"}
