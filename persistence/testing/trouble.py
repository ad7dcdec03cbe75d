"""Cases of trouble: a store that cannot answer says so, and never in the words of a lost condition or of absence."""
# ruff: noqa: S101, D102 - these are tests: they assert, and their names say what

from collections.abc import Callable

import pytest

from persistence.contract import IndexEntry, Persistence
from persistence.errors import PersistenceError
from persistence.testing.fixtures import FENCE

__all__ = ["TroubleCases"]

ENTRY = IndexEntry("p", 1.0, "name", "status", "tag")
APPEND = [("log", b"told")]

CALLS: dict[str, Callable[[Persistence], object]] = {
    "get": lambda store: store.get("p", FENCE),
    "load": lambda store: store.load("p"),
    "initialize": lambda store: store.initialize_if_absent("p", FENCE, b"1", {"a": b"1"}, ENTRY, APPEND),
    "write": lambda store: store.write_if_unchanged("p", FENCE, b"1", {FENCE: b"2"}, ["a"], ENTRY, APPEND),
    "write nothing": lambda store: store.write_if_unchanged("p", FENCE, b"1", {}),
    "delete": lambda store: store.delete_if_unchanged("p", FENCE, b"1", APPEND),
    "entry": lambda store: store.entry("p"),
    "due": lambda store: store.due(1.0),
    "find": lambda store: store.find(),
    "find by tag": lambda store: store.find(name="name", status="status", tag="tag", after=ENTRY),
    "read_log": lambda store: store.read_log("log"),
}
"""Every method."""


class TroubleCases:
    """Cases over a store whose server, file or disk fails."""

    @pytest.fixture
    def broken(self) -> Persistence:
        """A store that cannot answer: its server is gone, its directory is a file."""
        raise NotImplementedError("override the fixture `broken` in your suite: return a store that cannot answer")

    @pytest.mark.parametrize("call", CALLS)
    def test_a_store_that_cannot_answer_raises_and_returns_nothing(self, broken: Persistence, call: str) -> None:
        with pytest.raises(PersistenceError) as caught:
            CALLS[call](broken)
        told = str(caught.value)
        assert told
        assert "\n" not in told

    def test_an_entry_of_another_partition_is_refused_before_the_store_is_asked(self, broken: Persistence) -> None:
        with pytest.raises(ValueError, match="partition"):
            broken.initialize_if_absent("p", FENCE, b"1", index=IndexEntry("q"))
        with pytest.raises(ValueError, match="partition"):
            broken.write_if_unchanged("p", FENCE, b"1", {}, index=IndexEntry("q"))
