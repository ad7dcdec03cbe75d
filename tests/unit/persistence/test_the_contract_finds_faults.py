"""The contract suite is worth something: each of these plausible faults of a backend fails the case that is meant for it."""

import time
import unicodedata
from dataclasses import replace

import pytest

from persistence import InMemoryPersistence
from persistence.testing import PersistenceContract, PersistenceScaleContract, PersistenceTroubleContract
from persistence.testing.trouble import CALLS


class AbsentEqualsEmpty(InMemoryPersistence):
    def write_if_unchanged(self, partition, condition_key, expected_value, *rest, **named):
        if expected_value == b"" and self.get(partition, condition_key) is None:
            return True
        return super().write_if_unchanged(partition, condition_key, expected_value, *rest, **named)


class InitializesAgain(InMemoryPersistence):
    def initialize_if_absent(self, partition, condition_key, initial_value, *rest, **named):
        if self.get(partition, condition_key) == b"":
            self.delete_if_unchanged(partition, condition_key, b"")
        return super().initialize_if_absent(partition, condition_key, initial_value, *rest, **named)


class ReplacesThePartition(InMemoryPersistence):
    def initialize_if_absent(self, partition, condition_key, initial_value, *rest, **named):
        if self.get(partition, condition_key) is None:
            self._partitions.pop(partition, None)
        return super().initialize_if_absent(partition, condition_key, initial_value, *rest, **named)


class DeletesLast(InMemoryPersistence):
    def write_if_unchanged(self, partition, condition_key, expected_value, records, delete=(), *rest, **named):
        gone = list(delete)
        done = super().write_if_unchanged(partition, condition_key, expected_value, records, gone, *rest, **named)
        for key in gone if done else ():
            self._partitions[partition].pop(key, None)
        return done


class Folding(InMemoryPersistence):
    """Keeps text as a database with a collation does."""

    def fold(self, text):
        raise NotImplementedError

    def get(self, partition, key):
        return super().get(partition, self.fold(key))

    def initialize_if_absent(self, partition, condition_key, initial_value, records=None, *rest, **named):
        folded = {self.fold(key): value for key, value in (records or {}).items()}
        return super().initialize_if_absent(partition, condition_key, initial_value, folded, *rest, **named)


class IgnoresCase(Folding):
    def fold(self, text):
        return text.casefold()


class TrimsSpaces(Folding):
    def fold(self, text):
        return text.rstrip(" ")


class NormalizesUnicode(Folding):
    def fold(self, text):
        return unicodedata.normalize("NFC", text)


class EndsAtNul(Folding):
    def fold(self, text):
        return text.partition("\x00")[0]


class KeepsTheIndex(InMemoryPersistence):
    def delete_if_unchanged(self, partition, *rest, **named):
        entry = self._index.get(partition)
        done = super().delete_if_unchanged(partition, *rest, **named)
        if entry:
            self._index[partition] = entry
        return done


class AppendsWhenLost(InMemoryPersistence):
    def write_if_unchanged(self, partition, condition_key, expected_value, records, delete=(), index=None, append=()):
        done = super().write_if_unchanged(partition, condition_key, expected_value, records, delete, index)
        self._append(append)
        return done


class IndexesWhenLost(InMemoryPersistence):
    def write_if_unchanged(self, partition, condition_key, expected_value, records, delete=(), index=None, append=()):
        if index:
            self._index[partition] = index
        return super().write_if_unchanged(partition, condition_key, expected_value, records, delete, index, append)


class DueBeforeOnly(InMemoryPersistence):
    def due(self, before, *rest, **named):
        return [entry for entry in super().due(before, *rest, **named) if entry.due != before]


class DueInSinglePrecision(InMemoryPersistence):
    def due(self, before, *rest, **named):
        return [replace(entry, due=round(entry.due, 3)) for entry in super().due(before, *rest, **named)]


class FindsByPrefix(InMemoryPersistence):
    def find(self, *, name=None, limit=100, **named):
        found = super().find(limit=10_000, **named)
        return [entry for entry in found if name is None or entry.name.startswith(name)][:limit]


class OrdersLikeUtf16(InMemoryPersistence):
    def find(self, **named):
        return sorted(super().find(**named), key=lambda entry: entry.partition.encode("utf-16-be"))


class PageIncludesItsStart(InMemoryPersistence):
    def read_log(self, name, after=None, *rest, **named):
        return super().read_log(name, str(max(int(after) - 1, 0)) if after else after, *rest, **named)


class ChangesOneAfterTheOther(InMemoryPersistence):
    """Writes records, index and logs in three operations, in an order of its own."""

    order = ("records", "index", "append")

    def write_if_unchanged(self, partition, condition_key, expected_value, records, delete=(), index=None, append=()):
        given = {"records": (records, None, ()), "index": ({}, index, ()), "append": ({}, None, append)}
        for part in self.order:
            only_records, only_index, only_append = given[part]
            expected = self.get(partition, condition_key)
            super().write_if_unchanged(partition, condition_key, expected, only_records, (), only_index, only_append)
            time.sleep(0.0005)  # the fault: others look in between
        return True


class IndexesLast(ChangesOneAfterTheOther):
    order = ("records", "append", "index")


class IndexesFirst(ChangesOneAfterTheOther):
    order = ("index", "records", "append")


class AppendsFirst(ChangesOneAfterTheOther):
    order = ("append", "records", "index")


class AnswersInTrouble(InMemoryPersistence):
    """Takes a server that is gone for a lost condition, or for a partition that is not there."""


FAULTS = {
    AbsentEqualsEmpty: "test_an_absent_condition_equals_nothing_not_even_empty_bytes",
    InitializesAgain: "test_an_empty_condition_counts_as_initialized",
    ReplacesThePartition: "test_initializing_keeps_other_records_and_replaces_given_ones",
    DeletesLast: "test_a_key_both_deleted_and_written_ends_up_written",
    IgnoresCase: "test_keys_are_kept_apart",
    TrimsSpaces: "test_keys_are_kept_apart",
    NormalizesUnicode: "test_keys_are_kept_apart",
    EndsAtNul: "test_keys_are_kept_apart",
    KeepsTheIndex: "test_a_deleted_partition_is_neither_due_nor_found",
    FindsByPrefix: "test_a_name_does_not_find_longer_names_or_other_fields",
    OrdersLikeUtf16: "test_what_is_found_comes_in_the_order_of_the_partitions_utf8_bytes",
    PageIncludesItsStart: "test_every_entry_is_a_place_to_read_on_from",
}


@pytest.mark.parametrize("store", FAULTS, ids=lambda store: store.__name__)
def test_a_fault_fails_its_case(store):
    case = getattr(PersistenceContract(), FAULTS[store])
    case(InMemoryPersistence())
    with pytest.raises(AssertionError):
        case(store())


@pytest.mark.parametrize("store", [DueBeforeOnly, DueInSinglePrecision])
def test_an_inexact_due_time_fails_its_case(store):
    with pytest.raises(AssertionError):
        PersistenceContract().test_a_due_time_keeps_every_bit_and_is_due_from_that_moment(store(), 1_796_083_200.123456)


@pytest.mark.parametrize("store", [AppendsWhenLost, IndexesWhenLost])
def test_a_lost_condition_that_leaves_a_trace_fails_its_case(store):
    with pytest.raises(AssertionError):
        PersistenceContract().test_a_lost_condition_leaves_records_index_and_logs_as_they_were(store(), "write")


@pytest.mark.parametrize("store", [IndexesLast, IndexesFirst, AppendsFirst])
def test_a_write_in_several_operations_fails_its_case(store):
    with pytest.raises(AssertionError):
        PersistenceContract().test_records_index_and_logs_change_at_one_moment(store())


@pytest.mark.parametrize("call", CALLS)
def test_trouble_that_is_taken_for_an_answer_fails_its_case(call):
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        PersistenceTroubleContract().test_a_store_that_cannot_answer_raises_and_returns_nothing(AnswersInTrouble(), call)


class Scales(PersistenceScaleContract):
    few, many = 20, 20_000


def test_an_index_that_reads_every_entry_fails_its_case():
    with pytest.raises(AssertionError):
        Scales().test_what_is_due_and_found_comes_in_indexed_time(InMemoryPersistence())
