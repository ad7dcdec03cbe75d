"""What a note is: a key on one line, and a text. Checks that all stores share."""

import re
from typing import cast

from mesh.knowledge.errors import KnowledgeStoreError

__all__ = ["check_key", "check_note"]

KEY_LIMIT = 1024
"""Bytes in the key of a note, as UTF-8."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_key(key: str) -> None:
    """Raises `KnowledgeStoreError` for a key that is no line of text."""
    if not key or _UNPRINTABLE.search(key) or len(key.encode()) > KEY_LIMIT:
        raise KnowledgeStoreError(f"{key!r:.80} cannot be the key of a note: use 1 to {KEY_LIMIT} bytes on one line")


def check_note(key: str, value: str) -> None:
    """Raises `KnowledgeStoreError` for a note that could not come back as it went in."""
    check_key(key)
    if not isinstance(cast(object, value), str):
        raise KnowledgeStoreError(f"the note {key!r:.80} is of type {type(value).__name__}: write it as text")
    if _SURROGATE.search(value):
        raise KnowledgeStoreError(
            f"the note {key!r:.80} holds half of a surrogate pair, which is not text: repair or replace it"
        )
