"""A reply that is lost after the command took effect is settled: as success, once, and never as a conflict."""

from collections.abc import Callable

import pytest

from persistence import IndexEntry, Persistence, RedisPersistence, UnreachableError
from persistence.redis import connect

pytestmark = pytest.mark.server

ENTRY = IndexEntry("p", 1.0, "name")
APPEND = [("log", b"told")]
INTENTS: dict[str, tuple[Callable[[Persistence], bool], dict[str, bytes]]] = {
    "initialize": (
        lambda store: store.initialize_if_absent("p", "new", b"mine", {"a": b"2"}, ENTRY, APPEND),
        {"new": b"mine", "f": b"1", "a": b"2"},
    ),
    "write": (
        lambda store: store.write_if_unchanged("p", "f", b"1", {"f": b"mine", "a": b"2"}, (), ENTRY, APPEND),
        {"f": b"mine", "a": b"2"},
    ),
    "delete": (lambda store: store.delete_if_unchanged("p", "f", b"1", APPEND), {}),
}
"""Each intent, and the records that it leaves."""

NEVER_AT_ONCE = (0.0, 0.0, 0.0)
"""Tries follow each other without a pause."""


@pytest.fixture
def store(server) -> Persistence:
    """Return a store that speaks to the server directly, with a partition that every intent can change."""
    store = RedisPersistence(connect(server.url))
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    return store


@pytest.fixture
def wired(store, wire) -> Persistence:
    """Return a store on the wire, whose server knows all scripts already."""
    wired = RedisPersistence(connect(wire.url), retry_delays=NEVER_AT_ONCE)
    wired.initialize_if_absent("other", "f", b"1")
    wired.write_if_unchanged("other", "f", b"1", {})
    wired.delete_if_unchanged("other", "f", b"1")
    return wired


@pytest.mark.parametrize("lost", [1, 2])
@pytest.mark.parametrize("intent", INTENTS)
def test_a_lost_reply_counts_as_success_once(store, wired, wire, intent, lost):
    act, left = INTENTS[intent]
    wire.lost_replies = lost
    assert act(wired)
    assert wire.lost_replies == 0
    assert store.load("p") == left
    assert [entry.data for entry in store.read_log("log")] == [b"told"]
    assert store.find() == ([] if intent == "delete" else [ENTRY])


@pytest.mark.parametrize("intent", INTENTS)
def test_a_lost_request_takes_effect_once(store, wired, wire, intent):
    act, left = INTENTS[intent]
    wire.lost_requests = 2
    assert act(wired)
    assert store.load("p") == left
    assert [entry.data for entry in store.read_log("log")] == [b"told"]


@pytest.mark.parametrize("intent", INTENTS)
def test_a_server_that_is_loading_is_asked_again(store, wired, wire, intent):
    act, left = INTENTS[intent]
    wire.answers = [b"-LOADING the dataset is read\r\n"] * 2
    assert act(wired)
    assert store.load("p") == left


def test_a_lost_reply_never_turns_a_lost_condition_into_success(store, wired, wire):
    wire.lost_replies = 3
    assert not wired.initialize_if_absent("p", "f", b"mine", append=APPEND)
    wire.lost_replies = 3
    assert not wired.write_if_unchanged("p", "f", b"0", {"f": b"mine"}, append=APPEND)
    wire.lost_replies = 3
    assert not wired.delete_if_unchanged("p", "f", b"0", APPEND)
    assert store.load("p") == {"f": b"1", "a": b"1"}
    assert store.read_log("log") == []


def test_an_append_under_an_unchanged_condition_is_not_repeated(store, wired, wire):
    wire.lost_replies = 1
    with pytest.raises(UnreachableError):
        wired.write_if_unchanged("p", "f", b"1", {"a": b"2"}, append=APPEND)
    assert [entry.data for entry in store.read_log("log")] == [b"told"]


def test_what_never_gets_a_reply_is_an_error_and_not_a_conflict(wired, wire):
    wire.lost_replies = len(NEVER_AT_ONCE) + 1
    with pytest.raises(UnreachableError, match=r"no answer from the Redis server at .*: start it or correct its URL"):
        wired.write_if_unchanged("p", "f", b"1", {"f": b"mine"})


@pytest.mark.parametrize("intent", INTENTS)
def test_a_reply_that_never_comes_counts_as_success_once(store, wired, wire, intent):
    act, left = INTENTS[intent]
    impatient = RedisPersistence(connect(wire.url, socket_timeout=0.2), retry_delays=NEVER_AT_ONCE)
    wire.swallowed_replies = 1
    assert act(impatient)
    assert wire.swallowed_replies == 0
    assert store.load("p") == left
    assert [entry.data for entry in store.read_log("log")] == [b"told"]


@pytest.mark.parametrize("lost", ["lost_replies", "lost_requests"])
@pytest.mark.parametrize("intent", INTENTS)
def test_what_a_cluster_loses_takes_effect_once(cluster, wired_cluster, intent, lost):
    act, left = INTENTS[intent]
    store = RedisPersistence(connect(cluster.url))
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    wired = RedisPersistence(wired_cluster.client(), retry_delays=NEVER_AT_ONCE)
    wired.write_if_unchanged("p", "f", b"1", {})
    for wire in wired_cluster.wires.values():
        setattr(wire, lost, 1)
    assert act(wired)
    assert sum(getattr(wire, lost) for wire in wired_cluster.wires.values()) == 2
    assert store.load("p") == left
    assert [entry.data for entry in store.read_log("log")] == [b"told"]
    assert store.find() == ([] if intent == "delete" else [ENTRY])


def test_what_a_cluster_never_answers_is_an_error_and_not_a_conflict(cluster, wired_cluster):
    wired = RedisPersistence(wired_cluster.client(), retry_delays=NEVER_AT_ONCE)
    wired.initialize_if_absent("p", "f", b"1")
    for wire in wired_cluster.wires.values():
        wire.lost_replies = len(NEVER_AT_ONCE) + 1
    with pytest.raises(UnreachableError, match=r"no answer from the Redis cluster at 127\.0\.0\.1:\d+.*: start it"):
        wired.write_if_unchanged("p", "f", b"1", {"f": b"mine"})
