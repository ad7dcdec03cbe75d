"""The primary that Sentinels name: a failover is ridden out, and the old primary is not written to again."""

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from persistence import PersistenceError, RedisPersistence, UnreachableError
from persistence.redis import connect

AT_ONCE = ()
PATIENT = (0.05,) * 400
"""Tries for twenty seconds."""


def test_a_primary_handed_in_keeps_its_own_options(sentinels):
    addresses = [("127.0.0.1", 1), *(("127.0.0.1", node.port) for node in sentinels.watchers)]
    at_once = {"retry": Retry(NoBackoff(), 0)}
    with Sentinel(addresses, sentinel_kwargs=at_once, decode_responses=True) as manager, manager.master_for("mesh") as client:
        store = RedisPersistence(client)
        assert store.initialize_if_absent("p", "f", b"\xff")
        assert store.load("p") == {"f": b"\xff"}
        assert client.exists(*client.keys("*"))


def test_a_client_of_replicas_is_refused(sentinels):
    manager = Sentinel([("127.0.0.1", sentinels.watchers[0].port)])
    with pytest.raises(PersistenceError, match=r"cannot write: hand in Sentinel\.master_for"):
        RedisPersistence(manager.slave_for("mesh"))


def test_a_service_that_the_sentinels_do_not_know_is_unreachable_by_its_name(sentinels):
    store = RedisPersistence(connect(sentinels.url.replace("/mesh", "/other")), retry_delays=AT_ONCE)
    with pytest.raises(UnreachableError, match=r"no answer from the Redis primary 'other' by the Sentinels at 127\.0\.0\.1:"):
        store.load("p")


def test_an_orderly_failover_turns_writes_to_the_new_primary(own_sentinels):
    group = own_sentinels
    store = RedisPersistence(connect(group.url), retry_delays=PATIENT)
    store.initialize_if_absent("p", "f", b"0")
    group.watchers[0].asks("SENTINEL", "FAILOVER", "mesh")
    while "role:slave" not in group.primary.asks("INFO", "replication"):
        held = store.get("p", "f")
        store.write_if_unchanged("p", "f", held, {"f": b"%d" % (int(held) + 1)})
    # What the old primary still took while it was being replaced is lost: no replica has it.
    assert store.write_if_unchanged("p", "f", store.get("p", "f"), {"f": b"last"})
    with group.replica.client() as client:
        assert client.hgetall(client.keys("*p:p")[0]) == {"f": "last"}


def test_the_death_of_the_primary_is_ridden_out_with_the_usual_patience(own_sentinels):
    group = own_sentinels
    store = RedisPersistence(connect(group.url))
    assert store.initialize_if_absent("p", "f", b"0")
    group.primary.kill_in_step()
    assert store.write_if_unchanged("p", "f", b"0", {"f": b"1"}, append=[("log", b"told")])
    assert store.load("p") == {"f": b"1"}
    assert [entry.data for entry in store.read_log("log")] == [b"told"]
    with pytest.raises(redis.ConnectionError), group.primary.client() as client:
        client.ping()
