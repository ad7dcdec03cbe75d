"""Cases of the index: what is due, in order; what is found, by which values, page by page."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

import math
from dataclasses import replace
from itertools import product

import pytest

from persistence.contract import DEFAULT_LIMIT, IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases

__all__ = ["IndexCases"]

NOW = 1_796_083_200.123456
"""Seconds since 1970, with the digits that a narrow number type loses."""
NOT_ASCII = ("\u00e9", "e\u0301", "\uffff", "\U0001f600")
"""Text that UTF-16 and collations order differently from UTF-8."""
ENDLESS = 1000
"""More pages than any case has: whoever reads so many turns in a circle."""


def add(store: Persistence, *entries: IndexEntry) -> None:
    """One partition for each entry."""
    for entry in entries:
        assert store.initialize_if_absent(entry.partition, FENCE, b"1", index=entry)


def pages(store: Persistence, limit: int, name: str | None = None) -> list[list[IndexEntry]]:
    """Everything found, in pages read one after the other, without the empty one that may be last."""
    found: list[list[IndexEntry]] = []
    while page := store.find(name=name, limit=limit, after=found[-1][-1] if found else None):
        found.append(page)
        assert len(found) < ENDLESS
    return found


class IndexCases(StoreCases):
    """The index entry of a partition lives and changes with its records."""

    def test_a_partition_without_an_entry_is_neither_due_nor_found(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1")
        assert store.due(math.inf) == store.find() == []

    def test_an_entry_is_kept_until_a_write_brings_another(self, store: Persistence) -> None:
        first, second = IndexEntry("p", 1.0, "name", "first"), IndexEntry("p", 2.0, "name", "second")
        add(store, first)
        assert store.write_if_unchanged("p", FENCE, b"1", {"a": b"1"})
        assert store.find() == [first]
        assert store.write_if_unchanged("p", FENCE, b"1", {}, index=second)
        assert store.find() == [second]

    def test_a_write_of_no_records_may_move_the_due_time(self, store: Persistence) -> None:
        add(store, IndexEntry("p", 1.0))
        later = IndexEntry("p", 2.0)
        assert store.write_if_unchanged("p", FENCE, b"1", {}, index=later)
        assert store.due(1.5) == []
        assert store.due(2.0) == [later]

    def test_a_deleted_partition_is_neither_due_nor_found(self, store: Persistence) -> None:
        stays = IndexEntry("q", 2.0, "name", "status", "tag", "", "event")
        add(store, IndexEntry("p", 1.0, "name", "status", "tag", "", "event"), stays)
        assert store.delete_if_unchanged("p", FENCE, b"1")
        for found in (
            store.due(9.0),
            store.find(),
            store.find(name="name"),
            store.find(status="status"),
            store.find(tag="tag"),
            store.find(awaits="event"),
        ):
            assert found == [stays]

    def test_the_longest_due_comes_first(self, store: Persistence) -> None:
        entries = [IndexEntry(f"p{place}", NOW + (place * 37) % 101 / 64) for place in range(50)]
        add(store, *entries)
        assert store.due(NOW + 2) == sorted(entries, key=lambda entry: entry.due or 0.0)

    def test_no_more_than_the_limit_is_returned_and_the_longest_due_stay(self, store: Persistence) -> None:
        entries = [IndexEntry(f"p{place}", NOW - place) for place in range(DEFAULT_LIMIT + 5)]
        add(store, *entries)
        assert store.due(NOW, limit=1) == entries[-1:]
        assert store.due(NOW, limit=7) == entries[:-8:-1]
        assert store.due(NOW) == entries[:4:-1]
        assert store.due(NOW, limit=1000) == entries[::-1]

    def test_nothing_is_due_without_a_due_time(self, store: Persistence) -> None:
        never, once = IndexEntry("p", None, "name"), IndexEntry("q", 0.0, "name")
        add(store, never, once)
        assert store.due(math.inf) == [once]
        assert store.write_if_unchanged("q", FENCE, b"1", {}, index=replace(once, due=None))
        assert store.due(math.inf) == []
        assert store.find(name="name") == [never, replace(once, due=None)]

    @pytest.mark.parametrize("due", [NOW, 0.0, -1.5, 0.1 + 0.2, 5e-324, 1e300, math.nextafter(NOW, 0), 1_796_083_200])
    def test_a_due_time_keeps_every_bit_and_is_due_from_that_moment(self, store: Persistence, due: float) -> None:
        entry = IndexEntry("p", due)
        add(store, entry)
        assert store.due(math.nextafter(due, -math.inf)) == []
        assert store.due(due) == store.due(math.nextafter(due, math.inf)) == [entry]

    def test_each_value_finds_its_entries(self, store: Persistence) -> None:
        entries = [
            IndexEntry(f"{name}.{status}.{tag}.{awaits}", None, name, status, tag, "", awaits)
            for name, status, tag, awaits in product(("", "x"), ("", "x", "y"), (None, "", "x"), (None, "", "x"))
        ]
        add(store, *entries)
        ordered = sorted(entries, key=lambda entry: entry.partition.encode())
        for name, status, tag, awaits in product((None, "", "x", "z"), repeat=4):
            expected = [entry for entry in ordered if entry.matches(name, status, tag, awaits)]
            assert store.find(name=name, status=status, tag=tag, awaits=awaits) == expected

    def test_a_name_does_not_find_longer_names_or_other_fields(self, store: Persistence) -> None:
        names = ("a", "ab", "a ", "a:", "a\x01", "a\x7f", "A", "b", "n:a", "a\U0001f600")
        add(store, *(IndexEntry(f"p-{name}", None, name, "status", f"tag-{name}") for name in names))
        for name in names:
            assert [entry.name for entry in store.find(name=name)] == [name]
            assert [entry.name for entry in store.find(tag=f"tag-{name}")] == [name]
            assert store.find(status=name) == store.find(tag=name) == []

    def test_a_replaced_entry_is_not_found_under_its_old_values(self, store: Persistence) -> None:
        add(store, IndexEntry("p", 1.0, "old name", "old status", "old tag", "", "old event"))
        new = IndexEntry("p", None, "new name", "new status", None)
        assert store.write_if_unchanged("p", FENCE, b"1", {}, index=new)
        assert (
            store.find(name="old name")
            == store.find(status="old status")
            == store.find(tag="old tag")
            == store.find(awaits="old event")
            == []
        )
        assert store.find(name="new name", status="new status") == store.find() == [new]
        assert store.due(math.inf) == []

    def test_what_is_found_comes_in_the_order_of_the_partitions_utf8_bytes(self, store: Persistence) -> None:
        partitions = ["", " ", "\x00", "10", "9", "A", "B", "a", "a\x00", "a\x00b", "a b", "b", *NOT_ASCII]
        add(store, *(IndexEntry(partition, None, "name") for partition in partitions))
        expected = sorted(partitions, key=str.encode)
        assert [entry.partition for entry in store.find()] == expected
        assert [[entry.partition for entry in page] for page in pages(store, 1, "name")] == [[place] for place in expected]

    @pytest.mark.parametrize("limit", [1, 7, 12, 24, 25])
    def test_pages_hold_everything_once(self, store: Persistence, limit: int) -> None:
        entries = [IndexEntry(f"p{place:02}", None, "even" if place % 2 == 0 else "odd") for place in range(48)]
        add(store, *reversed(entries))
        for name, expected in ((None, entries), ("even", entries[::2]), ("odd", entries[1::2])):
            read = pages(store, limit, name)
            assert [entry for page in read for entry in page] == expected
            assert all(len(page) == limit for page in read[:-1])

    def test_pages_of_two_values_hold_everything_once(self, store: Persistence) -> None:
        entries = [IndexEntry(f"p{place:03}", None, "name", "rare" if place % 17 == 0 else "often") for place in range(120)]
        add(store, *entries)
        expected = entries[::17]
        assert store.find(name="name", status="rare", limit=3) == expected[:3]
        assert store.find(name="name", status="rare", limit=3, after=expected[2]) == expected[3:6]
        assert store.find(name="name", status="rare") == expected

    def test_a_page_holds_the_default_number_unless_told_otherwise(self, store: Persistence) -> None:
        entries = [IndexEntry(f"p{place:03}") for place in range(DEFAULT_LIMIT + 1)]
        add(store, *entries)
        assert store.find() == entries[:-1]
        assert store.find(after=entries[-2]) == entries[-1:]

    def test_paging_goes_on_behind_an_entry_that_was_deleted_or_changed_since(self, store: Persistence) -> None:
        entries = [IndexEntry(f"p{place}", None, "name") for place in range(4)]
        add(store, *entries)
        assert store.delete_if_unchanged("p1", FENCE, b"1")
        assert store.find(name="name", after=entries[1]) == entries[2:]
        assert store.write_if_unchanged("p2", FENCE, b"1", {}, index=replace(entries[2], name="other"))
        assert store.find(name="name", after=entries[2]) == entries[3:]

    def test_an_entry_of_another_partition_is_refused_and_nothing_is_written(self, store: Persistence) -> None:
        with pytest.raises(ValueError, match="partition"):
            store.initialize_if_absent("p", FENCE, b"1", index=IndexEntry("q"))
        store.initialize_if_absent("p", FENCE, b"1")
        with pytest.raises(ValueError, match="partition"):
            store.write_if_unchanged("p", FENCE, b"1", {"a": b"1"}, index=IndexEntry("q"))
        assert store.load("p") == {FENCE: b"1"}
        assert store.find() == []
