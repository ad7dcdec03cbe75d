"""The ground floor: partitions of records with atomic conditional writes, a due index and logs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from persistence.contract import IndexEntry, LogEntry, Persistence
from persistence.errors import PersistenceError, UnreachableError
from persistence.memory import InMemoryPersistence
from persistence.opening import open_persistence

if TYPE_CHECKING:
    from persistence.file.store import FilePersistence
    from persistence.redis.store import RedisPersistence
    from persistence.sql.store import SqlPersistence

__all__ = [
    "FilePersistence",
    "InMemoryPersistence",
    "IndexEntry",
    "LogEntry",
    "Persistence",
    "PersistenceError",
    "RedisPersistence",
    "SqlPersistence",
    "UnreachableError",
    "open_persistence",
]


_ON_DEMAND = {
    "FilePersistence": "persistence.file.store",
    "RedisPersistence": "persistence.redis.store",
    "SqlPersistence": "persistence.sql.store",
}


def __getattr__(name: str) -> Any:
    """The stores that not everybody uses, on demand, so that this room alone does not load their clients (PEP 562)."""
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
