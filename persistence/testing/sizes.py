"""Cases of size: where column types, script stacks and packets have their limits."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

import pytest

from persistence.contract import IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases, data_of

__all__ = ["SizeCases"]

MANY = 10_001
"""Records in one write: more than a Lua stack or a list of SQL parameters takes at once."""


class SizeCases(StoreCases):
    """Large values, many records."""

    @pytest.mark.parametrize("size", [2**16 + 1, 2**24 + 1], ids=["past 64 KiB", "past 16 MiB"])
    def test_a_large_value_comes_back_whole(self, store: Persistence, size: int) -> None:
        value = bytes(range(251)) * (size // 251) + bytes(size % 251)
        assert store.initialize_if_absent("p", FENCE, b"1", {"a": value})
        assert store.get("p", "a") == value
        assert store.write_if_unchanged("p", FENCE, b"1", {FENCE: value})
        assert not store.write_if_unchanged("p", FENCE, value[:-1], {})
        assert store.write_if_unchanged("p", FENCE, value, {"a": b""})
        assert store.load("p") == {FENCE: value, "a": b""}

    def test_a_large_log_entry_comes_back_whole(self, store: Persistence) -> None:
        data = b"\xff" * (2**16 + 1)
        store.initialize_if_absent("p", FENCE, b"1", append=[("log", data)])
        assert data_of(store.read_log("log")) == [data]

    def test_one_write_takes_many_records(self, store: Persistence) -> None:
        first = {f"{place:05}": b"1" for place in range(MANY)}
        assert store.initialize_if_absent("p", FENCE, b"1", first)
        assert store.load("p") == {FENCE: b"1", **first}
        second = dict.fromkeys(first, b"2")
        assert store.write_if_unchanged("p", FENCE, b"1", second)
        assert store.load("p") == {FENCE: b"1", **second}
        assert store.write_if_unchanged("p", FENCE, b"1", {"a": b"3"}, first)
        assert store.load("p") == {FENCE: b"1", "a": b"3"}

    def test_one_write_appends_many_entries(self, store: Persistence) -> None:
        append = [(f"log {place % 7}", f"{place}".encode()) for place in range(700)]
        store.initialize_if_absent("p", FENCE, b"1", append=append)
        for log in range(7):
            expected = [f"{place}".encode() for place in range(log, 700, 7)]
            assert data_of(store.read_log(f"log {log}", limit=1000)) == expected

    def test_a_summary_may_be_a_page_long(self, store: Persistence) -> None:
        entry = IndexEntry("p", 1.0, summary="\u20ac" * 4000)
        store.initialize_if_absent("p", FENCE, b"1", index=entry)
        assert store.due(1.0) == [entry]
