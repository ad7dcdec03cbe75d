"""A reply to COMMIT that is lost is settled: as success, once, and never as a conflict."""

from collections.abc import Callable

import pytest

from persistence import IndexEntry, Persistence, UnreachableError
from persistence.sql import SqlPersistence
from persistence.sql.tables import VERSION, Tables

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
    "write that removes the condition": (
        lambda store: store.write_if_unchanged("p", "f", b"1", {"a": b"2"}, ["f"], ENTRY, APPEND),
        {"a": b"2"},
    ),
    "delete": (lambda store: store.delete_if_unchanged("p", "f", b"1", APPEND), {}),
}
"""Each intent, and the records that it leaves."""

AT_ONCE = (0.0,) * 6
"""Tries follow each other without a pause."""


@pytest.fixture
def store(server_store) -> Persistence:
    """Return a store that speaks to the server directly, with a partition that every intent can change."""
    server_store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    return server_store


@pytest.fixture
def wired(store, wire):
    """Return a store on the wire."""
    wired = SqlPersistence(wire.url, retry_delays=AT_ONCE)
    assert wired.get("p", "f") == b"1"
    yield wired
    wired.close()


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
def test_a_lost_commit_takes_effect_once(store, wired, wire, intent):
    act, left = INTENTS[intent]
    wire.lost_requests = 2
    assert act(wired)
    assert wire.lost_requests == 0
    assert store.load("p") == left
    assert [entry.data for entry in store.read_log("log")] == [b"told"]


def test_a_lost_reply_is_no_licence_to_overwrite_what_another_wrote_since(store, wired, wire):
    wire.lost_replies = 1

    def overtake(_: float) -> None:
        assert store.write_if_unchanged("p", "f", b"mine", {"f": b"theirs"})

    wired._link._sleep = overtake
    assert not wired.write_if_unchanged("p", "f", b"1", {"f": b"mine"}, append=APPEND)
    assert store.get("p", "f") == b"theirs"
    assert len(store.read_log("log")) == 1


def test_an_append_under_an_unchanged_condition_is_not_repeated(store, wired, wire):
    wire.lost_replies = 1
    with pytest.raises(UnreachableError, match="whether the write took effect is unknown"):
        wired.write_if_unchanged("p", "f", b"1", {"a": b"2"}, append=APPEND)
    assert [entry.data for entry in store.read_log("log")] == [b"told"]


def test_what_never_gets_a_reply_is_an_error_and_not_a_conflict(wired, wire):
    wire.lost_requests = len(AT_ONCE) + 1
    with pytest.raises(UnreachableError, match=r"no answer from the database at .*: start it or correct its URL"):
        wired.write_if_unchanged("p", "f", b"1", {"f": b"mine"})


def test_what_a_repeated_commit_finds_says_nothing_of_the_first_one(store, wired, wire):
    """Between both the tables become those of another release."""
    wire.lost_replies = 1
    schema = Tables().schema

    def become(version: int) -> None:
        with store._link.engine.connect() as connection:
            connection.execute(schema.update().values(version=version))

    wired._link._sleep = lambda _: become(VERSION + 1)
    try:
        with pytest.raises(UnreachableError, match=r"are of version .*; whether the write took effect is unknown$"):
            wired.write_if_unchanged("p", "f", b"1", {"f": b"mine"}, append=APPEND)
    finally:
        become(VERSION)
    assert store.get("p", "f") == b"mine"
