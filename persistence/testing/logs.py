"""Cases of the logs: complete, in order, resumable, and longer-lived than the partition that wrote them."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

import pytest

from persistence.contract import DEFAULT_LIMIT, LogEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases, data_of

__all__ = ["LogCases"]

PARTITIONS = [f"partition {place}" for place in range(40)]
ENDLESS = 10_000
"""More entries than any case writes: whoever reads so many turns in a circle."""


def append(store: Persistence, partition: str, *data: bytes, log: str = "log") -> None:
    """Entries appended by one write of a partition."""
    store.initialize_if_absent(partition, FENCE, b"1")
    assert store.write_if_unchanged(partition, FENCE, b"1", {}, append=[(log, entry) for entry in data])


def read_all(store: Persistence, limit: int, after: str | None = None) -> list[LogEntry]:
    """The rest of the log, read page by page."""
    read: list[LogEntry] = []
    while page := store.read_log("log", read[-1].position if read else after, limit):
        assert len(page) <= limit
        read += page
        assert len(read) < ENDLESS
    return read


class LogCases(StoreCases):
    """Entries are appended by the write that they tell of."""

    def test_a_log_that_nobody_wrote_is_empty(self, store: Persistence) -> None:
        assert store.read_log("log") == []

    def test_each_intent_appends_when_it_takes_effect(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", append=[("log", b"begun")])
        store.write_if_unchanged("p", FENCE, b"1", {FENCE: b"2"}, append=[("log", b"written")])
        store.delete_if_unchanged("p", FENCE, b"2", append=[("log", b"deleted")])
        assert data_of(store.read_log("log")) == [b"begun", b"written", b"deleted"]

    def test_a_log_outlives_the_partition(self, store: Persistence) -> None:
        append(store, "p", b"1", b"2")
        store.delete_if_unchanged("p", FENCE, b"1")
        append(store, "p", b"3")
        assert data_of(store.read_log("log")) == [b"1", b"2", b"3"]

    def test_one_write_may_append_to_several_logs_and_twice_to_one(self, store: Persistence) -> None:
        entries = [("log", b"1"), ("other", b"2"), ("log", b"3"), ("log", b"3")]
        store.initialize_if_absent("p", FENCE, b"1", append=entries)
        assert data_of(store.read_log("log")) == [b"1", b"3", b"3"]
        assert data_of(store.read_log("other")) == [b"2"]

    @pytest.mark.parametrize("limit", [1, 3, 10, 11])
    def test_pages_hold_everything_once_and_in_order(self, store: Persistence, limit: int) -> None:
        written = [f"{place}".encode() for place in range(20)]
        for entry in written:
            append(store, "p", entry)
        assert data_of(read_all(store, limit)) == written

    def test_a_page_holds_the_default_number_unless_told_otherwise(self, store: Persistence) -> None:
        written = [f"{place}".encode() for place in range(DEFAULT_LIMIT + 1)]
        append(store, "p", *written)
        first = store.read_log("log")
        assert data_of(first) == written[:-1]
        assert data_of(store.read_log("log", first[-1].position)) == written[-1:]

    def test_every_entry_is_a_place_to_read_on_from(self, store: Persistence) -> None:
        for entry in (b"1", b"2", b"3", b"4"):
            append(store, "p", entry, entry)
        entries = store.read_log("log")
        for place, entry in enumerate(entries, 1):
            assert data_of(store.read_log("log", entry.position)) == data_of(entries[place:])

    def test_the_end_of_a_log_is_a_place_to_read_on_from(self, store: Persistence) -> None:
        append(store, "p", b"1")
        end = store.read_log("log")[-1].position
        assert store.read_log("log", end) == []
        append(store, "p", b"2")
        append(store, "q", b"3")
        assert sorted(data_of(store.read_log("log", end))) == [b"2", b"3"]

    @pytest.mark.parametrize("limit", [1, 7, 1000])
    def test_entries_of_many_partitions_are_complete_and_each_partition_in_order(self, store: Persistence, limit: int) -> None:
        for turn in range(3):
            for partition in PARTITIONS:
                append(store, partition, f"{partition}/{turn}".encode())
        read = data_of(read_all(store, limit))
        assert len(read) == 3 * len(PARTITIONS)
        for partition in PARTITIONS:
            own = [entry for entry in read if entry.startswith(f"{partition}/".encode())]
            assert own == [f"{partition}/{turn}".encode() for turn in range(3)]

    def test_entries_appended_between_two_pages_are_never_missed(self, store: Persistence) -> None:
        read: list[LogEntry] = []
        for turn, partition in enumerate(PARTITIONS):
            append(store, partition, f"{turn} first".encode(), f"{turn} second".encode())
            read += store.read_log("log", read[-1].position if read else None, limit=1)
        read += read_all(store, 10, read[-1].position)
        expected = [f"{turn} {which}".encode() for turn, _ in enumerate(PARTITIONS) for which in ("first", "second")]
        assert sorted(data_of(read)) == sorted(expected)

    @pytest.mark.parametrize("position", ["", "not a position", "[]", "-1", '{"0": "x"}'])
    def test_a_position_that_no_log_gave_is_refused_in_words(self, store: Persistence, position: str) -> None:
        append(store, "p", b"1")
        with pytest.raises(ValueError, match="position"):
            store.read_log("log", position)
