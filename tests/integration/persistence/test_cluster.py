"""A cluster: partitions spread over its nodes; slots that move and nodes that die are followed, and nothing happens twice."""

import threading
import time
from typing import TYPE_CHECKING, Self

import pytest
import redis

from persistence import IndexEntry, PersistenceError, RedisPersistence, UnreachableError
from persistence.redis import connect
from persistence.redis.keys import SHARDS, Keys, shard_of

if TYPE_CHECKING:
    from tests.integration.conftest import Cluster, Node

AT_ONCE = ()
PATIENT = (0.05,) * 400
"""Tries for twenty seconds."""


def key_of(partition: str) -> str:
    return Keys("jarvis:workflow:", shard_of(partition)).partition(partition)


def counted(store: RedisPersistence, partition: str, stop: threading.Event) -> int:
    """Count in a partition, writing to its index entry and to the log, until told to stop; the last number written."""
    number = 0
    store.initialize_if_absent(partition, "f", b"0")
    while not stop.is_set():
        entry, told = IndexEntry(partition, float(number)), [("log", b"%d" % number)]
        assert store.write_if_unchanged(partition, "f", b"%d" % number, {"f": b"%d" % (number + 1)}, (), entry, told)
        number += 1
    return number


class Counting:
    """Counts in a thread from `with` to the end of the block."""

    def __init__(self, store: RedisPersistence, partition: str) -> None:
        self.number: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._count, args=(store, partition))

    def _count(self, store: RedisPersistence, partition: str) -> None:
        self.number = counted(store, partition, self._stop)

    @property
    def alive(self) -> bool:
        """Whether it still counts."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def assert_counted(store: RedisPersistence, partition: str, number: int | None) -> None:
    assert number
    assert store.load(partition) == {"f": b"%d" % number}
    assert [entry.data for entry in store.read_log("log", limit=100_000)] == [b"%d" % place for place in range(number)]


def test_every_node_has_its_part_and_every_read_sees_all(cluster):
    store = RedisPersistence(connect(cluster.url))
    entries = [IndexEntry(f"p{place:03}", float(place), "name") for place in range(2 * SHARDS)]
    for entry in entries:
        assert store.initialize_if_absent(entry.partition, "f", b"1", index=entry, append=[("log", entry.partition.encode())])
    assert all(node.asks("DBSIZE") > 0 for node in cluster.nodes)
    assert store.due(9e9, limit=1000) == store.find(name="name", limit=1000) == entries
    assert {entry.data.decode() for entry in store.read_log("log", limit=1000)} == {entry.partition for entry in entries}


def test_a_client_of_a_cluster_can_be_handed_in_and_keeps_its_own_options(cluster):
    with cluster.client(decode_responses=True) as client:
        store = RedisPersistence(client)
        assert store.initialize_if_absent("p", "f", b"\xff", index=IndexEntry("p", 1.0))
        assert store.load("p") == {"f": b"\xff"}
        assert store.due(2.0) == [IndexEntry("p", 1.0)]
        assert {type(key) for key in client.keys("*", target_nodes=redis.RedisCluster.ALL_NODES)} == {str}


def test_a_queue_of_commands_to_a_cluster_is_refused(cluster):
    with cluster.client() as client, pytest.raises(PersistenceError, match=r"a ClusterPipeline cannot serve"):
        RedisPersistence(client.pipeline())


def test_one_node_that_answers_leads_to_all(cluster):
    store = RedisPersistence(connect(f"redis+cluster://127.0.0.1:1,{cluster.nodes[2].address}"), retry_delays=AT_ONCE)
    assert store.initialize_if_absent("p", "f", b"1")


def test_a_cluster_of_which_no_node_answers_is_unreachable():
    store = RedisPersistence(connect("redis+cluster://user:topsecret@127.0.0.1:1,127.0.0.1:2"), retry_delays=AT_ONCE)
    with pytest.raises(
        UnreachableError, match=r"no answer from the Redis cluster at 127\.0\.0\.1:1,127\.0\.0\.1:2: start it"
    ) as no:
        store.load("p")
    assert "topsecret" not in str(no.value)


def test_a_single_server_named_as_a_cluster_is_an_error_that_says_so(sentinels):
    store = RedisPersistence(connect(f"redis+cluster://{sentinels.primary.address}"))
    with pytest.raises(PersistenceError, match=r"cannot be used .*: correct the URL \(redis:// for a single server\)"):
        store.load("p")


def test_wrong_credentials_and_a_missing_right_are_told_as_such(cluster):
    for node in cluster.nodes:
        node.asks("ACL", "SETUSER", "narrow", "on", ">pw", "~*", "+@all", "-cluster")
    wrong = connect(cluster.url.replace("//", "//narrow:guess@"))
    with pytest.raises(PersistenceError, match="refused these credentials") as caught:
        RedisPersistence(wrong).load("p")
    assert "guess" not in str(caught.value)
    narrow = connect(cluster.url.replace("//", "//narrow:pw@"))
    with pytest.raises(PersistenceError, match=r"lacks a right .*cluster.*: grant it with ACL SETUSER"):
        RedisPersistence(narrow).load("p")


@pytest.mark.parametrize("own_fleet", ["Redis", "Valkey"], indirect=True)
def test_a_slot_that_moves_to_a_node_nobody_knew_is_followed(own_cluster):
    """The client meets every word for it: ask there, it moved, try again."""
    cluster, store = own_cluster, RedisPersistence(connect(own_cluster.url), retry_delays=PATIENT)
    slot = cluster.nodes[0].asks("CLUSTER KEYSLOT", key_of("p"))
    source, target = cluster.node_of(key_of("p")), cluster.node()
    assert store.load("p") == {}  # it knows the nodes from before
    cluster.join(target)
    cluster.await_state(target)
    target.asks("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id_of(source))
    source.asks("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id_of(target))
    assert store.due(1.0) == store.find() == store.read_log("log") == []
    with Counting(store, "p") as counting:
        assert store.load("p") == {}
        give(slot, target, cluster, source)
        poll_log(store, counting)
    assert_counted(store, "p", counting.number)
    assert target.asks("CLUSTER", "COUNTKEYSINSLOT", slot) == 5


@pytest.mark.parametrize("own_fleet", ["Redis", "Valkey"], indirect=True)
def test_a_slot_that_moves_during_writes_loses_and_repeats_nothing(own_cluster):
    cluster, store = own_cluster, RedisPersistence(connect(own_cluster.url), retry_delays=PATIENT)
    slot = cluster.nodes[0].asks("CLUSTER KEYSLOT", key_of("p"))
    with Counting(store, "p") as counting:
        for _ in range(3):
            poll_log(store, counting)
            source = cluster.node_of(key_of("p"))
            target = next(node for node in cluster.nodes if node is not source)
            target.asks("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster.id_of(source))
            source.asks("CLUSTER", "SETSLOT", slot, "MIGRATING", cluster.id_of(target))
            while keys := source.asks("CLUSTER", "GETKEYSINSLOT", slot, 1):
                source.asks("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            give(slot, target, cluster, source)
        poll_log(store, counting)
    assert_counted(store, "p", counting.number)


def give(slot: int, target: "Node", cluster: "Cluster", source: "Node") -> None:
    """Say that a slot belongs to another node now: first to the two, then to the others."""
    for node in [target, source, *(node for node in cluster.nodes if node not in (source, target))]:
        node.asks("CLUSTER", "SETSLOT", slot, "NODE", cluster.id_of(target))


def poll_log(store: RedisPersistence, counting: Counting) -> None:
    """Wait until some more has been written."""
    deadline, held = time.monotonic() + 20, length(store)
    while length(store) < held + 20:
        assert counting.alive
        assert time.monotonic() < deadline


def length(store: RedisPersistence) -> int:
    return len(store.read_log("log", limit=100_000))


@pytest.mark.parametrize("own_fleet", ["Redis", "Valkey"], indirect=True)
def test_the_death_of_a_primary_is_ridden_out(own_cluster):
    cluster, store = own_cluster, RedisPersistence(connect(own_cluster.url), retry_delays=PATIENT)
    partition = next(name for name in map(str, range(100)) if cluster.node_of(key_of(name)) is cluster.nodes[0])
    assert store.initialize_if_absent(partition, "f", b"0")
    cluster.nodes[0].kill_in_step()
    for number in range(20):
        told = [("log", b"%d" % number)]
        assert store.write_if_unchanged(partition, "f", b"%d" % number, {"f": b"%d" % (number + 1)}, append=told)
    assert_counted(store, partition, 20)


def test_slots_that_nobody_serves_are_an_error_that_names_the_node_missing(own_cluster):
    cluster, store = own_cluster, RedisPersistence(connect(own_cluster.url), retry_delays=AT_ONCE)
    partition = next(name for name in map(str, range(100)) if cluster.node_of(key_of(name)) is cluster.nodes[1])
    store.initialize_if_absent(partition, "f", b"1")
    slot = cluster.nodes[1].asks("CLUSTER KEYSLOT", key_of(partition))
    for node in cluster.nodes:
        node.asks("CLUSTER", "DELSLOTS", slot)
    with pytest.raises(PersistenceError, match=r"does not serve these keys .*: start the missing node"):
        store.write_if_unchanged(partition, "f", b"1", {"f": b"2"})
