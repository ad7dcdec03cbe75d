"""How far each schedule has come, remembered in the store, so that nothing rests on beat's file or on any process.

partition             key               value
__schedule:<name>     rule and zone     the cursor, as JSON

An occurrence is claimed in the cursor before its run is recorded, and confirmed after it. So whoever finds a claim that was not
confirmed knows which run to look for, and a schedule whose rule was changed begins anew. Partitions of this name are no
workflow's: ids may not begin so.
"""

import datetime as dt
import json
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from persistence import Persistence, PersistenceError
from workers.schedules.schedule import Schedule
from workflow.ids import new_writer

__all__ = ["Cursor", "CursorStore"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a schedule stands. ``at`` is the slot that was begun last, or the moment from which a new schedule counts."""

    at: dt.datetime
    workflow_id: str | None = None
    late: bool = False
    before: dt.datetime | None = None
    """While the slot is claimed and not confirmed: where the cursor stood before."""
    claimed_at: dt.datetime | None = None

    def claim(self, at: dt.datetime, workflow_id: str, now: dt.datetime, *, late: bool) -> "Cursor":
        """The cursor when a later slot is about to be begun."""
        return Cursor(at, workflow_id, late, before=self.at, claimed_at=now)

    def confirmed(self) -> "Cursor":
        """The cursor when its slot was begun."""
        return replace(self, before=None, claimed_at=None)

    def withdrawn(self) -> "Cursor":
        """The cursor as it stood before the claim."""
        return Cursor(self.before or self.at)

    def to_bytes(self) -> bytes:
        """The stored bytes: no two writers ever write the same."""
        record = {
            "at": _text(self.at),
            "workflow_id": self.workflow_id,
            "late": self.late,
            "before": _text(self.before),
            "claimed_at": _text(self.claimed_at),
            "writer": new_writer(),
        }
        return json.dumps(record).encode()

    @classmethod
    def of(cls, data: bytes, name: str) -> Self:
        """The cursor in stored bytes. Raises `PersistenceError` naming the schedule when they hold none."""
        try:
            record = cast(dict[str, Any], json.loads(data))
            at = dt.datetime.fromisoformat(record["at"])
            before, claimed_at = _moment(record["before"]), _moment(record["claimed_at"])
            if at.tzinfo is None:
                raise ValueError("a moment without a zone")
            return cls(at, record["workflow_id"], record["late"], before, claimed_at)
        except (ValueError, TypeError, KeyError) as trouble:
            raise PersistenceError(
                f"the cursor of schedule {name!r} is corrupt: delete partition '__schedule:{name}'"
            ) from trouble


class CursorStore:
    """The cursor of one schedule in a store, as this object last read or wrote it."""

    def __init__(self, store: Persistence, schedule: Schedule) -> None:
        self._store = store
        self._name = schedule.name
        self._partition = f"__schedule:{schedule.name}"
        self._key = schedule.key
        self._held: bytes | None = None

    def read(self) -> Cursor | None:
        """The cursor, or None when the schedule has never been looked at."""
        self._held = self._store.get(self._partition, self._key)
        return None if self._held is None else Cursor.of(self._held, self._name)

    def read_or_begin(self, first: dt.datetime) -> Cursor:
        """The cursor; for a new schedule one that counts from a moment."""
        found = self.read()
        if found is not None:
            return found
        self._store.initialize_if_absent(self._partition, self._key, Cursor(first).to_bytes())
        return self.read() or Cursor(first)

    def move(self, cursor: Cursor) -> bool:
        """Write the cursor. False when somebody else has moved it since it was read."""
        if self._held is None:
            return False
        data = cursor.to_bytes()
        if not self._store.write_if_unchanged(self._partition, self._key, self._held, {self._key: data}):
            return False
        self._held = data
        return True


def _text(at: dt.datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _moment(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text)
