"""Typed events: what nodes receive and return. Routing is by exact class."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from workflow.registry import register_type

__all__ = ["Event", "StartEvent", "StopEvent"]


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
