"""The case that nobody thought of: random sequences of calls, compared with a model in plain dictionaries."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

from dataclasses import replace
from itertools import count
from typing import cast

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from persistence.contract import IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases, data_of

__all__ = ["ModelCases"]

EXAMPLES = 30
STEPS = 30

PARTITIONS = ("p", "P", "p\x00", "\U0001f600")
KEYS = st.sampled_from((FENCE, "", "a", "A"))
VALUES = st.sampled_from((b"", b"1", b"\x00\xff"))
EXPECTED = st.none() | VALUES
RECORDS = st.dictionaries(KEYS, VALUES, max_size=3)
WORDS = st.sampled_from(("", "x", "xy"))
LOGS = st.lists(st.sampled_from(("log", "other log")), max_size=2)
TIMES = st.sampled_from((0.0, 1.0, 2.5)) | st.floats(allow_nan=False, allow_infinity=False)
ENTRIES = st.none() | st.builds(
    IndexEntry, st.just(""), st.none() | TIMES, WORDS, WORDS, st.none() | WORDS, st.text(max_size=5), st.none() | WORDS
)
LIMITS = st.integers(1, 5)

Log = list[tuple[str, bytes]]
"""Entries with what names them: a log's name on the way in, the partition that wrote them in the model."""


class ModelCases(StoreCases):
    """A store behaves like the model."""

    def test_any_sequence_of_calls_does_what_the_model_does(self, store: Persistence) -> None:
        quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
        rules = settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            phases=(Phase.reuse, Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            deadline=None,
            suppress_health_check=quiet,
        )
        examples = count()

        def machine() -> RuleBasedStateMachine:
            return StoreMachine(store, f"example {next(examples)} ")

        # Declared for a class, and content with anything that makes a machine.
        run_state_machine_as_test(cast(type[RuleBasedStateMachine], machine), settings=rules)


class StoreMachine(RuleBasedStateMachine):
    """One example: the store and the model, changed alike. It leaves the store without partitions; logs have its prefix."""

    def __init__(self, store: Persistence, prefix: str) -> None:
        super().__init__()
        self.store = store
        self.prefix = prefix
        self.records: dict[str, dict[str, bytes]] = {}
        self.index: dict[str, IndexEntry] = {}
        self.logs: dict[str, Log] = {}
        self.serial = count()

    @rule(partition=st.sampled_from(PARTITIONS), key=KEYS, value=VALUES, records=RECORDS, entry=ENTRIES, logs=LOGS)
    def initialize(
        self, partition: str, key: str, value: bytes, records: dict[str, bytes], entry: IndexEntry | None, logs: list[str]
    ) -> None:
        """Begin a partition, or meet one that has begun."""
        entry = entry and replace(entry, partition=partition)
        append = self.new_entries(logs)
        took_effect = self.store.initialize_if_absent(partition, key, value, records, entry, append)
        assert took_effect == (key not in self.records.get(partition, {}))
        if took_effect:
            self.change(partition, {**records, key: value}, [], entry, append)

    @rule(
        partition=st.sampled_from(PARTITIONS),
        key=KEYS,
        expected=EXPECTED,
        records=RECORDS,
        gone=st.lists(KEYS),
        entry=ENTRIES,
        logs=LOGS,
    )
    def write(
        self,
        partition: str,
        key: str,
        expected: bytes | None,
        records: dict[str, bytes],
        gone: list[str],
        entry: IndexEntry | None,
        logs: list[str],
    ) -> None:
        """Write under the condition that holds (expected None), or under some other."""
        entry = entry and replace(entry, partition=partition)
        append = self.new_entries(logs)
        held = self.records.get(partition, {}).get(key)
        expected = (held or b"") if expected is None else expected
        took_effect = self.store.write_if_unchanged(partition, key, expected, records, gone, entry, append)
        assert took_effect == (held == expected)
        if took_effect:
            self.change(partition, records, gone, entry, append)

    @rule(partition=st.sampled_from(PARTITIONS), key=KEYS, expected=EXPECTED, logs=LOGS)
    def delete(self, partition: str, key: str, expected: bytes | None, logs: list[str]) -> None:
        """Delete under the condition that holds (expected None), or under some other."""
        append = self.new_entries(logs)
        held = self.records.get(partition, {}).get(key)
        expected = (held or b"") if expected is None else expected
        took_effect = self.store.delete_if_unchanged(partition, key, expected, append)
        assert took_effect == (held == expected)
        if took_effect:
            self.change(partition, {}, list(self.records[partition]), None, append)
            self.index.pop(partition, None)

    @rule(partition=st.sampled_from(PARTITIONS), key=KEYS)
    def look(self, partition: str, key: str) -> None:
        """The records of one partition."""
        held = self.records.get(partition, {})
        assert self.store.load(partition) == held
        assert self.store.get(partition, key) == held.get(key)

    @rule(before=TIMES, limit=LIMITS)
    def look_for_due(self, before: float, limit: int) -> None:
        """Entries that are due; those due at the same moment may come in any order."""
        due = sorted(entry.due for entry in self.index.values() if entry.due is not None and entry.due <= before)
        found = self.store.due(before, limit)
        assert [entry.due for entry in found] == due[:limit]
        assert [self.index[entry.partition] for entry in found] == found

    @rule(
        name=st.none() | WORDS,
        status=st.none() | WORDS,
        tag=st.none() | WORDS,
        awaits=st.none() | WORDS,
        limit=LIMITS,
    )
    def search(self, name: str | None, status: str | None, tag: str | None, awaits: str | None, limit: int) -> None:
        """Entries by their values, two pages of them."""
        matching = [entry for entry in self.index.values() if entry.matches(name, status, tag, awaits)]
        expected = sorted(matching, key=lambda entry: entry.partition.encode())
        first = self.store.find(name=name, status=status, tag=tag, awaits=awaits, limit=limit)
        assert first == expected[:limit]
        if first:
            after = self.store.find(name=name, status=status, tag=tag, awaits=awaits, limit=limit, after=first[-1])
            assert after == expected[limit : 2 * limit]

    def teardown(self) -> None:
        """Compare everything once more, and leave the store without partitions, also after a failure."""
        try:
            self.compare_all()
        finally:
            for partition in PARTITIONS:
                self.store.initialize_if_absent(partition, FENCE, b"")
                self.store.delete_if_unchanged(partition, FENCE, self.store.get(partition, FENCE) or b"")

    def compare_all(self) -> None:
        """Every partition, the whole index, every log."""
        for partition in PARTITIONS:
            assert self.store.load(partition) == self.records.get(partition, {})
        assert self.store.find() == sorted(self.index.values(), key=lambda entry: entry.partition.encode())
        for name, written in self.logs.items():
            self.compare_log(name, written)

    def compare_log(self, name: str, written: Log) -> None:
        """A log is complete, and the entries of each partition are in order."""
        entries = self.store.read_log(name, limit=2)
        while page := self.store.read_log(name, entries[-1].position, limit=2) if entries else []:
            entries += page
            assert len(entries) <= len(written)
        read = data_of(entries)
        assert sorted(read) == sorted(data for _, data in written)
        for partition in {partition for partition, _ in written}:
            own = [data for writer, data in written if writer == partition]
            assert [data for data in read if data in own] == own

    def new_entries(self, logs: list[str]) -> Log:
        """An entry of its own for each of these logs."""
        return [(self.prefix + log, f"{next(self.serial)}".encode()) for log in logs]

    def change(self, partition: str, records: dict[str, bytes], gone: list[str], entry: IndexEntry | None, append: Log) -> None:
        """What took effect in the store takes effect in the model."""
        held = self.records.setdefault(partition, {})
        for key in gone:
            held.pop(key, None)
        held.update(records)
        if entry is not None:
            self.index[partition] = entry
        for log, data in append:
            self.logs.setdefault(log, []).append((partition, data))
