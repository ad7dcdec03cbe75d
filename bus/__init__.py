"""The signal bus: facts with ids, published once, read by groups that remember their place."""

from typing import TYPE_CHECKING, Any

from bus.consumer import SignalConsumer
from bus.contract import DeadLetter, Delivery, GroupInfo, GroupReader, Page, Signal, SignalBus, Taken
from bus.errors import BusError, BusUnreachableError
from bus.failure import Backoff
from bus.memory import InMemorySignalBus
from bus.opening import open_bus

if TYPE_CHECKING:
    from bus.redis import RedisSignalBus

__all__ = [
    "Backoff",
    "BusError",
    "BusUnreachableError",
    "DeadLetter",
    "Delivery",
    "GroupInfo",
    "GroupReader",
    "InMemorySignalBus",
    "Page",
    "RedisSignalBus",
    "Signal",
    "SignalBus",
    "SignalConsumer",
    "Taken",
    "open_bus",
]


def __getattr__(name: str) -> Any:
    """`RedisSignalBus` on demand, so that this room alone does not load a Redis client (PEP 562)."""
    if name == "RedisSignalBus":
        from bus.redis import RedisSignalBus

        return RedisSignalBus
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
