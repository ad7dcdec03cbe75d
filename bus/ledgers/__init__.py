"""Ledgers: which signals a group has handled, recorded together with the effect of handling them."""

from typing import TYPE_CHECKING, Any

from bus.ledgers.contract import Ledger
from bus.ledgers.memory import InMemoryLedger

if TYPE_CHECKING:
    from bus.ledgers.redis import RedisLedger
    from bus.ledgers.sql import SqlLedger

__all__ = ["InMemoryLedger", "Ledger", "RedisLedger", "SqlLedger"]


def __getattr__(name: str) -> Any:
    """The ledgers that need a client, on demand (PEP 562)."""
    if name == "RedisLedger":
        from bus.ledgers.redis import RedisLedger

        return RedisLedger
    if name == "SqlLedger":
        from bus.ledgers.sql import SqlLedger

        return SqlLedger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
