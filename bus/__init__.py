"""The signal bus: facts with ids, published once, read by groups that remember their place."""

from typing import TYPE_CHECKING, Any

from bus.channel import ChannelFrame, ChannelGap, open_channel
from bus.consumer import SignalConsumer
from bus.contract import DeadLetter, Delivery, GroupInfo, GroupReader, Page, Signal, SignalBus, Taken
from bus.errors import BusError, BusUnreachableError
from bus.failure import Backoff, chosen
from bus.ledgers import InMemoryLedger, Ledger
from bus.memory import InMemorySignalBus
from bus.opening import open_bus
from bus.places import latest_position
from bus.topics import check_topic

if TYPE_CHECKING:
    from bus.ledgers import RedisLedger, SqlLedger
    from bus.redis import RedisChannel, RedisSignalBus

__all__ = [
    "Backoff",
    "BusError",
    "BusUnreachableError",
    "ChannelFrame",
    "ChannelGap",
    "DeadLetter",
    "Delivery",
    "GroupInfo",
    "GroupReader",
    "InMemoryLedger",
    "InMemorySignalBus",
    "Ledger",
    "Page",
    "RedisChannel",
    "RedisLedger",
    "RedisSignalBus",
    "Signal",
    "SignalBus",
    "SignalConsumer",
    "SqlLedger",
    "Taken",
    "check_topic",
    "chosen",
    "latest_position",
    "open_bus",
    "open_channel",
]


def __getattr__(name: str) -> Any:
    """What needs a client of Redis or SQL, on demand, so that this room alone loads neither (PEP 562)."""
    if name in ("RedisChannel", "RedisSignalBus"):
        from bus import redis

        return getattr(redis, name)
    if name in ("RedisLedger", "SqlLedger"):
        from bus import ledgers

        return getattr(ledgers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
