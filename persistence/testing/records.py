"""Cases of the records: the three atomic intents, what they change, and that a lost condition changes nothing."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

from collections.abc import Callable

import pytest

from persistence.contract import IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases, data_of

__all__ = ["RecordCases"]

Intent = Callable[[Persistence, IndexEntry, list[tuple[str, bytes]]], bool]

LOST_INTENTS: dict[str, Intent] = {
    "initialize": lambda store, index, append: store.initialize_if_absent("p", FENCE, b"2", {"a": b"2"}, index, append),
    "write": lambda store, index, append: store.write_if_unchanged("p", FENCE, b"0", {"a": b"2"}, ["b"], index, append),
    "write nothing": lambda store, index, append: store.write_if_unchanged("p", FENCE, b"0", {}, (), index, append),
    "delete": lambda store, _, append: store.delete_if_unchanged("p", FENCE, b"0", append),
}
"""Every intent, with a condition that does not hold while the fence is ``1``."""


class RecordCases(StoreCases):
    """Records and their condition."""

    def test_what_was_never_written_is_absent(self, store: Persistence) -> None:
        assert store.get("p", "a") is None
        assert store.load("p") == {}
        store.initialize_if_absent("p", FENCE, b"1")
        assert store.get("p", "a") is None

    def test_an_empty_value_is_not_an_absent_one(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b""})
        assert store.get("p", "a") == b""
        assert store.load("p") == {FENCE: b"1", "a": b""}

    def test_what_load_returned_is_the_callers_own(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1")
        store.load("p")["a"] = b"mine"
        assert store.load("p") == {FENCE: b"1"}

    def test_given_records_are_taken_as_they_are_at_the_call(self, store: Persistence) -> None:
        records = {"a": b"1"}
        store.initialize_if_absent("p", FENCE, b"1", records)
        records["a"] = b"2"
        assert store.get("p", "a") == b"1"

    def test_a_partition_is_initialized_once(self, store: Persistence) -> None:
        assert store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        assert not store.initialize_if_absent("p", FENCE, b"2", {"a": b"2", "b": b"2"})
        assert store.load("p") == {FENCE: b"1", "a": b"1"}

    def test_an_empty_condition_counts_as_initialized(self, store: Persistence) -> None:
        assert store.initialize_if_absent("p", FENCE, b"")
        assert not store.initialize_if_absent("p", FENCE, b"2")
        assert store.get("p", FENCE) == b""

    def test_the_initial_value_wins_over_a_record_of_the_same_key(self, store: Persistence) -> None:
        assert store.initialize_if_absent("p", FENCE, b"1", {FENCE: b"record", "a": b"1"})
        assert store.load("p") == {FENCE: b"1", "a": b"1"}

    def test_initializing_keeps_other_records_and_replaces_given_ones(self, store: Persistence) -> None:
        store.initialize_if_absent("p", "other fence", b"1", {"a": b"1", "b": b"1"})
        assert store.initialize_if_absent("p", FENCE, b"2", {"b": b"2", "c": b"2"})
        assert store.load("p") == {"other fence": b"1", "a": b"1", "b": b"2", "c": b"2", FENCE: b"2"}

    def test_a_write_upserts_under_the_expected_condition(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1", "b": b"1"})
        assert store.write_if_unchanged("p", FENCE, b"1", {"b": b"2", "c": b"2"})
        assert store.load("p") == {FENCE: b"1", "a": b"1", "b": b"2", "c": b"2"}

    def test_a_write_under_another_condition_changes_nothing(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        assert not store.write_if_unchanged("p", FENCE, b"2", {"a": b"2", FENCE: b"3"}, ["a"])
        assert store.load("p") == {FENCE: b"1", "a": b"1"}

    def test_an_absent_condition_equals_nothing_not_even_empty_bytes(self, store: Persistence) -> None:
        assert not store.write_if_unchanged("p", FENCE, b"", {"a": b"1"})
        assert not store.delete_if_unchanged("p", FENCE, b"")
        store.initialize_if_absent("p", "other fence", b"1")
        assert not store.write_if_unchanged("p", FENCE, b"", {"a": b"1"})
        assert not store.delete_if_unchanged("p", FENCE, b"")
        assert store.load("p") == {"other fence": b"1"}

    def test_an_empty_condition_equals_empty_bytes(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"")
        assert store.write_if_unchanged("p", FENCE, b"", {"a": b"1"})
        assert store.delete_if_unchanged("p", FENCE, b"")

    def test_a_write_of_no_records_only_checks_the_condition(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        assert store.write_if_unchanged("p", FENCE, b"1", {})
        assert not store.write_if_unchanged("p", FENCE, b"2", {})
        assert store.load("p") == {FENCE: b"1", "a": b"1"}

    def test_after_a_write_of_the_condition_only_the_new_bytes_hold(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1")
        assert store.write_if_unchanged("p", FENCE, b"1", {FENCE: b"2"})
        assert not store.write_if_unchanged("p", FENCE, b"1", {FENCE: b"3"})
        assert not store.delete_if_unchanged("p", FENCE, b"1")
        assert store.write_if_unchanged("p", FENCE, b"2", {FENCE: b"3"})
        assert store.load("p") == {FENCE: b"3"}

    def test_a_write_deletes_what_it_is_told_to_and_ignores_what_is_not_there(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1", "b": b"1", "c": b"1"})
        assert store.write_if_unchanged("p", FENCE, b"1", {"c": b"2"}, iter(["a", "b", "never there"]))
        assert store.load("p") == {FENCE: b"1", "c": b"2"}

    def test_a_key_both_deleted_and_written_ends_up_written(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        assert store.write_if_unchanged("p", FENCE, b"1", {"a": b"2", FENCE: b"2"}, ["a", FENCE])
        assert store.load("p") == {FENCE: b"2", "a": b"2"}

    def test_a_deleted_condition_can_be_initialized_again(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        assert store.write_if_unchanged("p", FENCE, b"1", {}, [FENCE])
        assert store.load("p") == {"a": b"1"}
        assert store.initialize_if_absent("p", FENCE, b"2")
        assert store.load("p") == {FENCE: b"2", "a": b"1"}

    def test_a_partition_is_deleted_as_a_whole_and_others_stay(self, store: Persistence) -> None:
        for partition in ("p", "p2", "other"):
            store.initialize_if_absent(partition, FENCE, b"1", {"a": b"1"})
        assert not store.delete_if_unchanged("p", FENCE, b"2")
        assert store.load("p") == {FENCE: b"1", "a": b"1"}
        assert store.delete_if_unchanged("p", FENCE, b"1")
        assert store.load("p") == {}
        assert store.load("p2") == store.load("other") == {FENCE: b"1", "a": b"1"}

    def test_a_deleted_partition_is_deleted_once_and_may_begin_again(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        assert store.delete_if_unchanged("p", FENCE, b"1")
        assert not store.delete_if_unchanged("p", FENCE, b"1")
        assert store.initialize_if_absent("p", FENCE, b"1")
        assert store.load("p") == {FENCE: b"1"}

    def test_partitions_do_not_see_each_other(self, store: Persistence) -> None:
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"})
        store.initialize_if_absent("q", FENCE, b"2", {"a": b"2"})
        assert not store.write_if_unchanged("q", FENCE, b"1", {"a": b"3"})
        assert store.write_if_unchanged("p", FENCE, b"1", {"a": b"3"}, ["b"])
        assert store.load("p") == {FENCE: b"1", "a": b"3"}
        assert store.load("q") == {FENCE: b"2", "a": b"2"}

    @pytest.mark.parametrize("intent", LOST_INTENTS)
    def test_a_lost_condition_leaves_records_index_and_logs_as_they_were(self, store: Persistence, intent: str) -> None:
        before = IndexEntry("p", 1.0, "name", "old", "tag", "summary")
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1", "b": b"1"}, before, [("log", b"old")])
        after = IndexEntry("p", 2.0, "name", "new", None, "changed")
        assert not LOST_INTENTS[intent](store, after, [("log", b"new"), ("other log", b"new")])
        assert store.load("p") == {FENCE: b"1", "a": b"1", "b": b"1"}
        assert store.due(10.0) == store.find() == [before]
        assert data_of(store.read_log("log")) == [b"old"]
        assert store.read_log("other log") == []
