"""The contract of a knowledge store as tests, for every adapter, also one of your own.

Subclass `KnowledgeStoreContract` in a test module and give it a fixture ``store`` that returns an empty store.
"""

from typing import Any

import pytest

from mesh.errors import MeshError
from mesh.ports import JarvisKnowledgeStore

__all__ = ["KnowledgeStoreContract"]


class KnowledgeStoreContract:
    """What `mesh.ports.JarvisKnowledgeStore` promises. Each test gets a new, empty ``store``."""

    def test_a_note_that_was_never_written_is_none(self, store: JarvisKnowledgeStore) -> None:
        assert store.get("briefing/2026-11-30/final") is None

    def test_a_note_comes_back_as_it_went_in(self, store: JarvisKnowledgeStore) -> None:
        for key, value in (("a", ""), ("b/c:{d}", "# Ü\n\x00 𝄞\r\n"), ("e f", "x" * 1_000_000)):
            store.put(key, value)
            assert store.get(key) == value

    def test_a_later_note_replaces_the_earlier_one(self, store: JarvisKnowledgeStore) -> None:
        store.put("a", "first")
        store.put("a", "second")
        store.put("b", "other")
        assert (store.get("a"), store.get("b")) == ("second", "other")

    def test_a_key_that_is_no_line_of_text_is_refused(self, store: JarvisKnowledgeStore) -> None:
        for key in ("", "a\nb", "\ud800", "x" * 1025):
            with pytest.raises(MeshError, match="key of a note"):
                store.put(key, "note")
            with pytest.raises(MeshError, match="key of a note"):
                store.get(key)

    def test_what_is_not_text_is_refused_and_changes_nothing(self, store: JarvisKnowledgeStore) -> None:
        store.put("a", "text")
        values: list[Any] = ["\ud800", b"bytes", None, 7]
        for value in values:
            with pytest.raises(MeshError, match="the note 'a'"):
                store.put("a", value)
        assert store.get("a") == "text"
