"""Index reads take two trips; what changes in between is never shown as what was asked for."""

from dataclasses import replace

import fakeredis
import pytest

from persistence import IndexEntry, PersistenceError, RedisPersistence
from persistence.redis.keys import Keys, shard_of

ENTRIES = [IndexEntry(f"p{place}", float(place), "name") for place in range(4)]


class Interrupted(RedisPersistence):
    """A store in which something happens between the two trips of the next index read."""

    between = staticmethod(lambda: None)

    def _entries(self, places):
        between, self.between = self.between, lambda: None
        between()
        return super()._entries(places)


@pytest.fixture
def store() -> Interrupted:
    store = Interrupted(fakeredis.FakeRedis(server=fakeredis.FakeServer()))
    for entry in ENTRIES:
        store.initialize_if_absent(entry.partition, "f", b"1", index=entry)
    return store


def test_an_entry_moved_to_later_is_not_due(store):
    store.between = lambda: store.write_if_unchanged("p1", "f", b"1", {}, index=replace(ENTRIES[1], due=9.0))
    assert store.due(2.0) == [ENTRIES[0], ENTRIES[2]]


def test_an_entry_that_has_gone_is_neither_due_nor_found(store):
    store.between = lambda: store.delete_if_unchanged("p1", "f", b"1")
    assert store.due(9.0) == [ENTRIES[0], *ENTRIES[2:]]
    store.between = lambda: store.delete_if_unchanged("p2", "f", b"1")
    assert store.find(name="name", limit=3) == [ENTRIES[0], ENTRIES[3]]


def test_an_entry_renamed_in_between_is_not_found_and_the_page_is_filled_up(store):
    store.between = lambda: store.write_if_unchanged("p1", "f", b"1", {}, index=replace(ENTRIES[1], name="other"))
    assert store.find(name="name", limit=2) == [ENTRIES[0], ENTRIES[2]]


def test_an_entry_that_is_not_ours_is_an_error_that_names_its_partition(store):
    store._link.client.hset(Keys("jarvis:workflow:", shard_of("p1")).entries, "p1", b"not json")
    with pytest.raises(PersistenceError, match="'p1' is corrupt"):
        store.find()
