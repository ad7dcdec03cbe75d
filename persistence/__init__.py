"""The ground floor: partitions of records with atomic conditional writes, a due index and logs."""

from typing import TYPE_CHECKING, Any

from persistence.contract import IndexEntry, LogEntry, Persistence
from persistence.errors import PersistenceError, UnreachableError
from persistence.memory import InMemoryPersistence
from persistence.opening import open_persistence

if TYPE_CHECKING:
    from persistence.redis.store import RedisPersistence

__all__ = [
    "InMemoryPersistence",
    "IndexEntry",
    "LogEntry",
    "Persistence",
    "PersistenceError",
    "RedisPersistence",
    "UnreachableError",
    "open_persistence",
]


def __getattr__(name: str) -> Any:
    """`RedisPersistence` on demand, so that this room alone does not load a Redis client (PEP 562)."""
    if name == "RedisPersistence":
        from persistence.redis.store import RedisPersistence

        return RedisPersistence
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
