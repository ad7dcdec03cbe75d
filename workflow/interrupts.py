"""What a run may wait for: a person, an event, a moment.

The set of types is closed, since each is something that a platform must be able to do. The classes are open: subclass one to
carry more portable fields, and to check answers in `InterruptRequest.validate_input`.
"""

import datetime as dt
import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, PrivateAttr

from workflow.canonical import canonical_json
from workflow.errors import WorkflowError
from workflow.registry import register_type
from workflow.text import is_unicode

__all__ = [
    "START_OF_RUN",
    "Action",
    "ApprovalRequest",
    "InputKind",
    "InterruptRequest",
    "InterruptType",
    "SleepUntilRequest",
    "UnknownRequest",
    "WaitForEventRequest",
]


class InterruptType(enum.Enum):
    """What a platform must provide: a subscription, or a timer."""

    WAIT_FOR_EVENT = "wait_for_event"
    SLEEP_UNTIL = "sleep_until"


class InputKind(enum.Enum):
    """How a wait ended: an event arrived, its timer fired, or its deadline passed."""

    EVENT = "event"
    TIMER = "timer"
    EXPIRED = "expired"


class InterruptRequest(BaseModel, ABC):
    """The portable description of a pause. The engine gives it an id, unique and rising within its run."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    _id: int | None = PrivateAttr(default=None)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Make the class known to the codec."""
        super().__pydantic_init_subclass__(**kwargs)
        register_type(cls)

    @property
    def id(self) -> int:
        """The engine's number. Raises `WorkflowError` before the run is suspended on this request."""
        if self._id is None:
            raise WorkflowError("this request has no id yet: the engine gives one when the run suspends")
        return self._id

    def with_id(self, number: int) -> Self:
        """A copy that bears this id. For the engine."""
        copy = self.model_copy()
        copy._id = number
        return copy

    @property
    @abstractmethod
    def type(self) -> InterruptType:
        """What a platform must provide."""

    @property
    @abstractmethod
    def deadline(self) -> dt.datetime | None:
        """When the wait ends by itself, if ever."""

    @property
    def awaited_event(self) -> str | None:
        """The name of the event that ends the wait; None when no event does."""
        return None

    @property
    def listens_since(self) -> str | None:
        """The position on the bus behind which a signal ends the wait; None when none does."""
        return None

    @abstractmethod
    def coordinates(self) -> dict[str, Any]:
        """The fields by which a platform recognises what ends the wait, as JSON values."""

    def metadata(self) -> dict[str, Any]:
        """Further fields for presentation, as JSON values. Override it in subclasses."""
        return {}

    def validate_input(self, kind: InputKind, payload: Any, now: dt.datetime) -> None:
        """Raise ValueError, saying why, when this cannot end the wait."""
        due = self.deadline is not None and int(self.deadline.timestamp()) <= int(now.timestamp())
        if kind is not InputKind.EVENT and not due:
            raise ValueError(f"the time of this wait ({self.deadline}) has not come")

    def to_json(self) -> dict[str, Any]:
        """The request as JSON values, for queues and people."""
        return {"interruptId": self.id, "type": self.type.value, **self.coordinates(), **self.metadata()}


START_OF_RUN = "start-of-run"
"""As ``since`` of a wait: an event that was published at any moment of the run ends it."""


class WaitForEventRequest(InterruptRequest):
    """Wait until an event of this name is delivered, or until ``expires_at``.

    ``since`` is the position on the bus behind which an event ends the wait: where the bus stood before the node was first
    called, unless told otherwise. ``match`` names payload keys and the values that they must have. ``used`` is the engine's:
    the entries on the bus that have ended earlier waits of the same node.
    """

    comes_over_the_bus: ClassVar[bool] = True
    """Whether a signal of this name on the bus ends the wait, too."""

    event_name: str
    expires_at: AwareDatetime | None = None
    since: str | None = None
    match: Mapping[str, Any] | None = None
    used: tuple[str, ...] = ()

    def __init__(
        self,
        event_name: str,
        expires_at: dt.datetime | None = None,
        since: str | None = None,
        match: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        if not event_name or "\x00" in event_name or not is_unicode(event_name):
            raise WorkflowError(f"{event_name!r:.80} cannot name an event: use text without NUL and without half characters")
        super().__init__(**{"event_name": event_name, "expires_at": expires_at, "since": since, "match": match, **fields})

    @property
    def type(self) -> InterruptType:
        """See `InterruptRequest.type`."""
        return InterruptType.WAIT_FOR_EVENT

    @property
    def deadline(self) -> dt.datetime | None:
        """See `InterruptRequest.deadline`."""
        return self.expires_at

    @property
    def awaited_event(self) -> str:
        """See `InterruptRequest.awaited_event`."""
        return self.event_name

    @property
    def listens_since(self) -> str | None:
        """See `InterruptRequest.listens_since`."""
        return self.since if self.comes_over_the_bus else None

    def ended_by(self, payload: Mapping[str, Any], entry: str | None = None) -> bool:
        """Whether a signal with this payload, at this entry of the bus, is the one that is waited for."""
        wanted = self.match or {}
        fits = all(key in payload and canonical_json(payload[key]) == canonical_json(wanted[key]) for key in wanted)
        return fits and (entry is None or entry not in self.used)

    def coordinates(self) -> dict[str, Any]:
        """See `InterruptRequest.coordinates`."""
        return {"eventName": self.event_name, "expiresAt": self.expires_at and self.expires_at.isoformat()}

    def validate_input(self, kind: InputKind, payload: Any, now: dt.datetime) -> None:
        """An event, or its deadline if it has one that has passed."""
        if kind is InputKind.TIMER:
            raise ValueError(f"this run waits for the event {self.event_name!r}, not for a timer")
        super().validate_input(kind, payload, now)


class SleepUntilRequest(InterruptRequest):
    """Wait until a moment."""

    wake_at: AwareDatetime

    def __init__(self, wake_at: dt.datetime, **fields: Any) -> None:
        super().__init__(**{"wake_at": wake_at, **fields})

    @property
    def type(self) -> InterruptType:
        """See `InterruptRequest.type`."""
        return InterruptType.SLEEP_UNTIL

    @property
    def deadline(self) -> dt.datetime:
        """See `InterruptRequest.deadline`."""
        return self.wake_at

    def coordinates(self) -> dict[str, Any]:
        """See `InterruptRequest.coordinates`."""
        return {"wakeAt": self.wake_at.isoformat()}

    def validate_input(self, kind: InputKind, payload: Any, now: dt.datetime) -> None:
        """Only its own timer, and only when it is due."""
        if kind is not InputKind.TIMER:
            raise ValueError(f"this run sleeps until {self.wake_at.isoformat()} and takes no answer")
        super().validate_input(kind, payload, now)


class Action(BaseModel):
    """One thing that a person is asked to decide."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    description: str = ""

    def __init__(self, id: str, name: str, description: str = "") -> None:  # noqa: A002 - the promised name
        super().__init__(id=id, name=name, description=description)


register_type(Action)


class ApprovalRequest(WaitForEventRequest):
    """Ask a person to approve ``actions``. The answer is the event ``approval``; its shape is a matter of node and caller."""

    comes_over_the_bus: ClassVar[bool] = False

    message: str
    actions: tuple[Action, ...] = ()

    def __init__(
        self, message: str, actions: Sequence[Action] = (), expires_at: dt.datetime | None = None, **fields: Any
    ) -> None:
        given: dict[str, Any] = {"message": message, "actions": tuple(actions), **fields}
        super().__init__("approval", expires_at, **given)

    def metadata(self) -> dict[str, Any]:
        """See `InterruptRequest.metadata`."""
        return {"message": self.message, "actions": [action.model_dump() for action in self.actions]}


class UnknownRequest(InterruptRequest):
    """A request whose class this program does not define, as its record describes it: to be shown, waited for and answered.

    Its class's own check of answers is not to be had here.
    """

    original: Any
    """The record itself, written back as it is."""
    shown: dict[str, Any]
    """What `to_json` gave where the class was known."""
    ends: AwareDatetime | None

    @property
    def type(self) -> InterruptType:
        """See `InterruptRequest.type`."""
        return InterruptType(self.shown["type"])

    @property
    def deadline(self) -> dt.datetime | None:
        """See `InterruptRequest.deadline`."""
        return self.ends

    @property
    def awaited_event(self) -> str | None:
        """See `InterruptRequest.awaited_event`."""
        return self.shown.get("eventName")

    def coordinates(self) -> dict[str, Any]:
        """See `InterruptRequest.coordinates`."""
        return self.shown

    def validate_input(self, kind: InputKind, payload: Any, now: dt.datetime) -> None:
        """An event for a wait, a timer for a sleep, each in its time."""
        if (kind is InputKind.TIMER) is not (self.type is InterruptType.SLEEP_UNTIL):
            raise ValueError(f"this run waits for something else than {kind.value}")
        super().validate_input(kind, payload, now)
