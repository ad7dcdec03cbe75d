"""The undo note: how a write that also appends to logs is one operation, although it changes several files.

While such a write is under way the note says how long the logs were, and by which sign the partition's file shows that the
write took effect. That sign decides: a write whose file was not yet put in its place is taken back from the logs by the next
one who holds the lock.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from persistence.errors import PersistenceError

__all__ = ["Undo"]


@dataclass(frozen=True, slots=True)
class Undo:
    """A write of ``partition`` whose file carries ``token`` afterwards, or is gone (None)."""

    partition: str
    token: str | None
    logs: tuple[tuple[str, int], ...]
    """Log segments, relative to the store, with their length before the write; 0 for one that was not there."""

    def encoded(self) -> bytes:
        """The bytes of the note."""
        return json.dumps([self.partition, self.token, self.logs]).encode()

    @classmethod
    def read(cls, path: Path) -> "Undo | None":
        """The note that stands there, if one does. Raises `PersistenceError` when it is not what was written."""
        try:
            stored: object = json.loads(path.read_bytes())
            partition, token, logs = cast(tuple[str, str | None, list[tuple[str, int]]], stored)
            return cls(partition, token, tuple((name, length) for name, length in logs))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as trouble:
            raise PersistenceError(f"the undo note {str(path)!r} is corrupt: restore the store from a backup") from trouble
