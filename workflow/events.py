"""Typed events: what nodes receive and return. Routing is by exact class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from workflow.interrupts import InterruptRequest
from workflow.registry import register_type

__all__ = ["ActivityStreamEvent", "Event", "InterruptEvent", "StartEvent", "StopEvent"]


class Event(BaseModel):
    """The base of all events: a frozen, validated value with named fields.

    A class registers under a stable name when it is defined: its ``type_name`` if it declares one, otherwise module and
    qualified name. Records in the store carry that name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Make the class known to the codec."""
        super().__pydantic_init_subclass__(**kwargs)
        register_type(cls)


class StartEvent(Event):
    """Starts a run when the definition names no other event."""


class StopEvent(Event):
    """Ends a run (or one branch of it). ``result`` is any value that the codec knows."""

    result: Any = None

    def __init__(self, result: Any = None, **fields: Any) -> None:
        super().__init__(**{"result": result, **fields})


class InterruptEvent(Event):
    """The last live item of a segment that was suspended: what the run waits for."""

    request: InterruptRequest

    def __init__(self, request: InterruptRequest, **fields: Any) -> None:
        super().__init__(**{"request": request, **fields})


@dataclass(frozen=True, slots=True)
class ActivityStreamEvent:
    """The portable live item: something with an id has news of a type. Not an event: it routes nothing."""

    id: str
    type: str
    data: Mapping[str, Any]
