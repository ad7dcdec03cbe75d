"""The records of a run in its partition: their keys and their stored shapes.

key                          what                                                       written
__control                    where the run stands; its bytes are the fence              with every write
__ignition                   what the run was started with, for its whole life          with the first control
<run>/<step>                 a settled step: the event it returned, the state it left   when a node returns
<run>/<step>::<name>         a memo                                                     inside the node
<run>/<step>::__answer.<h>   the answer of one wait of that step                        with the next write after it is used
<run>/<step>::__wait         a wait that was reached while another was the current       with that wait, in a branch
                             one, until it becomes that itself
<run>/__checkpoint           the state as it stood when the run was suspended           with the suspension
<run>/__failure              why the last segment failed                                with the failed control
<run>/__base                 the first steps folded into one: next step, its event,     with every 256th step
                             the whole state
<run>/__outcome              the final state and result of a retained run               with completion

The steps of a branch are ``<branch>/<step>``, where ``<branch>`` is a hash of its fork's number and its name; those of a
branch inside it ``<branch>/<branch>/<step>``. A base of its own is ``<run>/<branch>/__base``.

Every shape carries its version in ``v``. The first step record holds the whole state, later ones what changed.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Self

from workflow.events import Event

__all__ = [
    "ANSWER_PREFIX",
    "CONTROL",
    "IGNITION",
    "Answer",
    "Base",
    "Checkpoint",
    "Failure",
    "Ignition",
    "Outcome",
    "StateChange",
    "StepRecord",
    "answer_name",
    "base_key",
    "branch_prefix",
    "checkpoint_key",
    "deferred_key",
    "failure_key",
    "memo_key",
    "outcome_key",
    "step_key",
]

CONTROL = "__control"
IGNITION = "__ignition"
ANSWER_PREFIX = "__answer."
DEFERRED_NAME = "__wait"
VERSION = 1
"""Version of all shapes here."""


def step_key(run_id: str, step_id: str) -> str:
    """Where a settled step is kept."""
    return f"{run_id}/{step_id}"


def memo_key(run_id: str, step_id: str, name: str) -> str:
    """Where a memo of a step is kept."""
    return f"{run_id}/{step_id}::{name}"


def answer_name(wait: str) -> str:
    """The memo name under which the answer of one wait is kept; ``wait`` is its identity within the step."""
    return f"{ANSWER_PREFIX}{sha256(wait.encode()).hexdigest()[:32]}"


def checkpoint_key(run_id: str) -> str:
    """Where the state of a suspended run is kept."""
    return f"{run_id}/__checkpoint"


def deferred_key(run_id: str, step_id: str) -> str:
    """Where a deferred interruption of a step is kept."""
    return f"{run_id}/{step_id}::{DEFERRED_NAME}"


def branch_prefix(path: str, fork: int, branch: str) -> str:
    """What the step ids of a branch begin with: unlike that of any other branch of any other fork.

    ``path`` is what those of the forking path begin with, and ``fork`` the number of its step.
    """
    return path + sha256(f"{fork}\x00{branch}".encode()).hexdigest()[:24] + "/"


def base_key(run_id: str, prefix: str = "") -> str:
    """Where the folded steps of a path are kept; ``prefix`` is that of its step ids."""
    return f"{run_id}/{prefix}__base"


def failure_key(run_id: str) -> str:
    """Where the reason of the last failure is kept."""
    return f"{run_id}/__failure"


def outcome_key(run_id: str) -> str:
    """Where the outcome of a retained run is kept."""
    return f"{run_id}/__outcome"


@dataclass(frozen=True, slots=True)
class Ignition:
    """What a run was started with."""

    run_id: str
    start_event: Any
    name: str
    tag: str | None = None
    version: str | None = None
    """The version of the definition that the run was started with."""
    history: float | None = None
    """Since when (Unix seconds: its start) what happens to the run is told in the store's log; None when it is not."""
    position: str | None = None
    """Where the bus stood at the start, if somebody was there to say so."""

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        record = {
            "v": VERSION,
            "run": self.run_id,
            "event": self.start_event,
            "name": self.name,
            "tag": self.tag,
            "version": self.version,
        }
        return _placed(record if self.history is None else {**record, "history": self.history}, self.position)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        return cls(
            record["run"],
            record["event"],
            record["name"],
            record["tag"],
            record.get("version"),
            record.get("history"),
            record.get("position"),
        )


@dataclass(frozen=True, slots=True)
class StateChange:
    """What a step did to the state. ``whole`` says that ``values`` is all there is."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    removed: tuple[str, ...] = ()
    whole: bool = False

    def to_record(self) -> dict[str, Any]:
        """The stored shape. What is empty is left out."""
        record: dict[str, Any] = {"set": self.values}
        if self.removed:
            record["removed"] = list(self.removed)
        if self.whole:
            record["whole"] = True
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        return cls(dict(record["set"]), tuple(record.get("removed", ())), bool(record.get("whole", False)))


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A settled step."""

    event: Event
    state: StateChange
    position: str | None = None
    """Where the bus stood when the step was made."""

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        return _placed({"v": VERSION, "event": self.event, "state": self.state.to_record()}, self.position)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        return cls(_defined(record["event"]), StateChange.from_record(record["state"]), record.get("position"))


@dataclass(frozen=True, slots=True)
class Base:
    """Settled steps in one record: the path goes on at step ``following``, with this event and this state."""

    following: int
    event: Event
    state: StateChange
    position: str | None = None
    """Where the bus stood when the last of them was made."""

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        record = {"v": VERSION, "next": self.following, "event": self.event, "state": self.state.to_record()}
        return _placed(record, self.position)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        state = StateChange.from_record(record["state"])
        return cls(int(record["next"]), _defined(record["event"]), state, record.get("position"))


@dataclass(frozen=True, slots=True)
class Answer:
    """How one wait ended, kept so that a node that runs again gets it again."""

    payload: Any
    timed_out: bool = False
    position: str | None = None
    """Where on the bus the event stood that ended the wait, if it came from there."""

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        return _placed({"v": VERSION, "payload": self.payload, "timedOut": self.timed_out}, self.position)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        return cls(record["payload"], bool(record["timedOut"]), record.get("position"))


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a segment failed, for people: the class of the exception and its message."""

    error: str
    message: str
    at: dt.datetime
    retry_at: dt.datetime | None = None
    """When the run is tried again by itself."""

    def __str__(self) -> str:
        return f"{self.error}: {self.message}"

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        record = {"v": VERSION, "error": self.error, "message": self.message, "at": self.at}
        return record if self.retry_at is None else {**record, "retryAt": self.retry_at}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        return cls(record["error"], record["message"], record["at"], record.get("retryAt"))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a suspended run."""

    state: StateChange

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        return {"v": VERSION, "state": self.state.to_record()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        return cls(StateChange.from_record(record["state"]))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a retained run."""

    state: StateChange
    result: Any

    def to_record(self) -> dict[str, Any]:
        """The stored shape."""
        return {"v": VERSION, "state": self.state.to_record(), "result": self.result}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value behind a stored shape."""
        _check_version(record)
        return cls(StateChange.from_record(record["state"]), record["result"])


def _placed(record: dict[str, Any], position: str | None) -> dict[str, Any]:
    return record if position is None else {**record, "position": position}


def _check_version(record: Mapping[str, Any]) -> None:
    if record["v"] != VERSION:
        raise ValueError(f"version {record['v']!r} of this record is not known: use the release that wrote it")


def _defined(event: Any) -> Event:
    if not isinstance(event, Event):
        raise TypeError(f"the event {event!r} is not defined in this program: import its module, or drain old runs first")
    return event
