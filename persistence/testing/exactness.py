"""Cases of exactness: text and bytes that some layer of a database likes to fold, trim, decode or count as equal."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

import unicodedata
from collections.abc import Callable
from dataclasses import replace

import pytest

from persistence.contract import IndexEntry, Persistence
from persistence.testing.fixtures import FENCE, StoreCases, data_of

__all__ = ["ExactnessCases"]

ACCENTED = "caf\u00e9"
TEXTS = (
    *("", " ", "  ", "\t", "\n", "\x00", "\x00\x00", "\x01"),
    *("a", "A", "ab", "a ", " a", "a\n", "a\x00", "a\x00b", "a%", "a_", "a*", "a?"),
    *("a:b", "a{b}", "{a}b", "a\\b", "a'b", 'a"b', "a|b", "a,b"),
    *("0", "00", "1", "01", "+1", "-1", "1.0", "1e0", "0x1", "null", "None", "true", "__proto__"),
    *(unicodedata.normalize("NFC", ACCENTED), unicodedata.normalize("NFD", ACCENTED), "cafe", "CAF\u00c9"),
    *("\u00df", "ss", "SS", "\u0131", "i", "I", "\u0130", "\ufb01", "fi"),
    *("\u212b", "\u00c5", "\uffff", "\U0001f600", "\u200b", "\ufeffa"),
    *(".", "..", "../a", "/a", "a/b", "CON", "a.store", "~"),
)
"""Keys, partitions and log names that must be kept apart."""

BYTES = (
    *(b"", b"\x00", b"\x00\x00", b" ", b"a", b"A", b"a ", b" a", b"a\x00", b"a\r\n", b"a\n", b"'", b"\\"),
    *(b"0", b"00", b"1", b"01", b"1.0", b"-1", b"nan", b"null", b"false"),
    *(ACCENTED.encode(), unicodedata.normalize("NFD", ACCENTED).encode()),
    *(ACCENTED.encode("latin-1"), ACCENTED.encode("utf-16")),
    *(b"\xff", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x80abc", bytes(range(256))),
)
"""Values that must come back exactly and never equal each other."""


HALF = "a\ud800"
"""Half of a surrogate pair: Python takes it for text, UTF-8 does not."""
APPEND = [("log", b"told")]

WITH_HALF: dict[str, Callable[[Persistence], object]] = {
    "get a partition": lambda store: store.get(HALF, "a"),
    "get a key": lambda store: store.get("p", HALF),
    "load": lambda store: store.load(HALF),
    "initialize a partition": lambda store: store.initialize_if_absent(HALF, "new", b"1", {"b": b"1"}, None, APPEND),
    "initialize a condition": lambda store: store.initialize_if_absent("p", HALF, b"1", {"b": b"1"}, None, APPEND),
    "initialize a record": lambda store: store.initialize_if_absent("p", "new", b"1", {"b": b"1", HALF: b"1"}, None, APPEND),
    "initialize a log": lambda store: store.initialize_if_absent("p", "new", b"1", {"b": b"1"}, None, [*APPEND, (HALF, b"")]),
    "write a partition": lambda store: store.write_if_unchanged(HALF, FENCE, b"1", {"b": b"1"}, (), None, APPEND),
    "write a condition": lambda store: store.write_if_unchanged("p", HALF, b"1", {"b": b"1"}, (), None, APPEND),
    "write a record": lambda store: store.write_if_unchanged("p", FENCE, b"1", {"b": b"1", HALF: b"1"}, (), None, APPEND),
    "write a deletion": lambda store: store.write_if_unchanged("p", FENCE, b"1", {"b": b"1"}, iter([HALF]), None, APPEND),
    "write a log": lambda store: store.write_if_unchanged("p", FENCE, b"1", {"b": b"1"}, (), None, [*APPEND, (HALF, b"")]),
    "delete a partition": lambda store: store.delete_if_unchanged(HALF, FENCE, b"1", APPEND),
    "delete by a condition": lambda store: store.delete_if_unchanged("p", HALF, b"1", APPEND),
    "delete with a log": lambda store: store.delete_if_unchanged("p", FENCE, b"1", [*APPEND, (HALF, b"")]),
    "entry": lambda store: store.entry(HALF),
    "find a name": lambda store: store.find(name=HALF),
    "find a tag": lambda store: store.find(name="name", tag=HALF),
    "read_log": lambda store: store.read_log(HALF),
}
"""Every place where a store is handed text."""


class ExactnessCases(StoreCases):
    """Nothing is folded, trimmed, decoded or reinterpreted."""

    def test_keys_are_kept_apart(self, store: Persistence) -> None:
        records = {text: f"{place}".encode() for place, text in enumerate(TEXTS)}
        store.initialize_if_absent("p", FENCE, b"1", records)
        assert store.load("p") == {FENCE: b"1", **records}
        assert {text: store.get("p", text) for text in TEXTS} == records

    def test_keys_are_deleted_apart(self, store: Persistence) -> None:
        records = dict.fromkeys(TEXTS, b"1")
        store.initialize_if_absent("p", FENCE, b"1", records)
        for text in TEXTS:
            assert store.write_if_unchanged("p", FENCE, b"1", {}, [text])
            del records[text]
            assert store.load("p") == {FENCE: b"1", **records}

    def test_condition_keys_are_kept_apart(self, store: Persistence) -> None:
        for place, text in enumerate(TEXTS):
            assert store.initialize_if_absent("p", text, f"{place}".encode())
        for place, text in enumerate(TEXTS):
            assert store.write_if_unchanged("p", text, f"{place}".encode(), {text: f"new {place}".encode()})
        assert store.load("p") == {text: f"new {place}".encode() for place, text in enumerate(TEXTS)}

    def test_partitions_are_kept_apart(self, store: Persistence) -> None:
        for place, text in enumerate(TEXTS):
            entry = IndexEntry(text, float(place), "name")
            assert store.initialize_if_absent(text, FENCE, f"{place}".encode(), index=entry)
        assert [store.load(text) for text in TEXTS] == [{FENCE: f"{place}".encode()} for place, _ in enumerate(TEXTS)]
        assert [entry.partition for entry in store.due(1e9)] == list(TEXTS)
        assert [entry.partition for entry in store.find(name="name")] == sorted(TEXTS, key=str.encode)
        for place, text in enumerate(TEXTS):
            assert store.delete_if_unchanged(text, FENCE, f"{place}".encode())
            assert [entry.partition for entry in store.due(1e9)] == list(TEXTS[place + 1 :])

    def test_logs_are_kept_apart(self, store: Persistence) -> None:
        append = [(text, text.encode()) for text in TEXTS]
        store.initialize_if_absent("p", FENCE, b"1", append=append)
        assert [data_of(store.read_log(text)) for text in TEXTS] == [[text.encode()] for text in TEXTS]

    def test_values_come_back_exactly_as_bytes(self, store: Persistence) -> None:
        records = {f"{place}": value for place, value in enumerate(BYTES)}
        store.initialize_if_absent("p", FENCE, b"1", records, append=[("log", value) for value in BYTES])
        loaded = store.load("p")
        assert loaded == {FENCE: b"1", **records}
        assert {key: store.get("p", key) for key in records} == records
        assert data_of(store.read_log("log")) == list(BYTES)
        assert {type(value) for value in loaded.values()} == {bytes}

    @pytest.mark.parametrize("held", BYTES, ids=repr)
    def test_a_condition_equals_itself_and_nothing_else(self, store: Persistence, held: bytes) -> None:
        store.initialize_if_absent("p", FENCE, held)
        assert [value for value in BYTES if store.write_if_unchanged("p", FENCE, value, {})] == [held]

    @pytest.mark.parametrize("text", ["", "\x01", "a\nb", '"quoted" \\ \u20ac', "\U0001f600", ACCENTED, "e\u0301", "null", "1"])
    def test_index_entries_come_back_exactly(self, store: Persistence, text: str) -> None:
        entry = IndexEntry("p", 1.5, text, text, text, f"{text}\x00{text}")
        store.initialize_if_absent("p", FENCE, b"1", index=entry)
        assert store.find() == store.due(2.0) == store.find(name=text, status=text, tag=text) == [entry]

    @pytest.mark.parametrize("call", WITH_HALF)
    def test_text_that_is_not_unicode_is_refused_in_words_and_nothing_is_written(self, store: Persistence, call: str) -> None:
        entry = IndexEntry("p", 1.0, "name")
        store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"}, entry)
        with pytest.raises(ValueError, match=r"holds half of a surrogate pair, which is no character: remove it"):
            WITH_HALF[call](store)
        assert store.load("p") == {FENCE: b"1", "a": b"1"}
        assert store.find() == [entry]
        assert store.read_log("log") == []
        assert store.write_if_unchanged("p", FENCE, b"1", {FENCE: b"2"}, index=IndexEntry("p", 2.0, "name", "", "tag"))

    def test_an_entry_that_is_not_unicode_cannot_be_made_and_leaves_the_partition_usable(self, store: Persistence) -> None:
        entry = IndexEntry("p")
        for field in ("partition", "name", "status", "tag", "summary", "awaits"):
            with pytest.raises(ValueError, match="holds half of a surrogate pair"):
                store.initialize_if_absent("p", FENCE, b"1", index=replace(entry, **{field: HALF}))
        assert store.load("p") == {}
        assert store.initialize_if_absent("p", FENCE, b"1", index=IndexEntry("p", 1.0, "name", "", "tag"))
