"""What happened to runs, for people and listings: one line for each write that changed something, in the store's log.

A line is written in the same atomic operation as the change that it tells of, so the history neither misses one nor tells of
one that was never made. It outlives the run. Everybody who reads the store can read it, whatever codec the run has: payloads,
states and results are not in it, nor is anything from within a run whose codec may be there to hide it (`without_words`).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from persistence import LogEntry, PersistenceError
from workflow.control import Control
from workflow.json_codec import JsonSerializer
from workflow.serializer import PickleSerializer, Serializer

__all__ = [
    "HISTORY_LOG",
    "WAIT_NAMES",
    "Happened",
    "HistoryLine",
    "Told",
    "hides_nothing",
    "read_line",
    "waiting",
    "write_line",
]

HISTORY_LOG = "history"
"""The log in the store."""
VERSION = 1
"""Version of the stored shape."""
WAIT_NAMES = frozenset({"interruptId", "type", "eventName", "expiresAt"})
"""What every wait for an event shows; anything else is for people."""


class Happened(enum.Enum):
    """What a line tells of."""

    STARTED = "started"
    """The run was recorded."""
    CLAIMED = "claimed"
    """A worker has begun a segment: the first, the next after a wait or a failure, or one that was taken over."""
    STEP = "step"
    """A node has returned, and its step is recorded."""
    SUSPENDED = "suspended"
    ANSWERED = "answered"
    """The answer that the run waits for is recorded, by somebody who does not execute the run."""
    FAILED = "failed"
    """A segment ended in an error. With ``retry_at`` it is tried again by itself."""
    STALLED = "stalled"
    """Too many workers were lost with the run: it stands still until a person has it tried again."""
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    """The run was discarded, or gave way to another start."""


@dataclass(frozen=True, slots=True)
class Told:
    """What whoever writes has to say; the rest of its line is known where it is written."""

    kind: Happened
    step: str = ""
    seconds: float | None = None
    error: str | None = None
    message: str | None = None
    retry_at: float | None = None
    waits_for: Mapping[str, Any] | None = None

    def without_words(self) -> "Told":
        """Without what comes from within the run: an error's message, and what a question shows."""
        shown = self.waits_for and {name: value if name in WAIT_NAMES else None for name, value in self.waits_for.items()}
        return replace(self, message=None, waits_for=shown)


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One line. Moments are Unix seconds; ``started`` is the run's start, ``at`` that of what happened.

    ``seconds`` is how long a step took in the segment that ended it.
    """

    kind: Happened
    workflow_id: str
    run_id: str
    name: str
    attempt: int
    started: float
    at: float
    tag: str | None = None
    step: str = ""
    seconds: float | None = None
    error: str | None = None
    message: str | None = None
    retry_at: float | None = None
    waits_for: Mapping[str, Any] | None = None

    def to_record(self) -> dict[str, Any]:
        """The stored shape. What is empty is left out."""
        record: dict[str, Any] = {"v": VERSION, "kind": self.kind.value}
        for name in _FIELDS:
            value = getattr(self, name)
            if value not in (None, ""):
                record[name] = value
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape. Raises KeyError, TypeError or ValueError for any other shape."""
        if record["v"] != VERSION:
            raise ValueError(f"version {record['v']!r} of a line of history is not known")
        return cls(Happened(record["kind"]), **{name: value for name, value in record.items() if name in _FIELDS})


def waiting(control: Control) -> Told:
    """What is told of a suspension: the request that callers see from now on."""
    active = control.interrupt
    if active is None:
        return Told(Happened.SUSPENDED)
    return Told(Happened.SUSPENDED, step=active.step_id, waits_for=active.request.to_json())


def hides_nothing(serializer: Serializer) -> bool:
    """Whether everybody can read records of this codec. Any but ours, subclasses too, may be there to hide them."""
    return type(serializer) in (JsonSerializer, PickleSerializer)


_FIELDS = tuple(name for name in HistoryLine.__dataclass_fields__ if name != "kind")
_CODEC = JsonSerializer()


def write_line(line: HistoryLine) -> bytes:
    """The line as an entry of the log."""
    return _CODEC.dumps(line.to_record())


def read_line(entry: LogEntry) -> HistoryLine:
    """The line in an entry of the log. Raises `PersistenceError` for one that is none."""
    try:
        record = cast(Mapping[str, Any], _CODEC.loads(entry.data))
        return HistoryLine.from_record(record)
    except (KeyError, TypeError, ValueError) as trouble:
        raise PersistenceError(f"line {entry.position} of the history is corrupt ({trouble})") from trouble
