"""When each agent was last seen: `mesh.ports.JarvisHeartbeatStore` in memory and in Redis."""

from typing import TYPE_CHECKING, Any

from mesh.heartbeats.errors import HeartbeatStoreError
from mesh.heartbeats.memory import InMemoryHeartbeatStore

if TYPE_CHECKING:
    from mesh.heartbeats.redis import RedisHeartbeatStore

__all__ = ["HeartbeatStoreError", "InMemoryHeartbeatStore", "RedisHeartbeatStore"]


def __getattr__(name: str) -> Any:
    """`RedisHeartbeatStore` on demand, so that the others do not load a Redis client (PEP 562)."""
    if name == "RedisHeartbeatStore":
        from mesh.heartbeats.redis import RedisHeartbeatStore

        return RedisHeartbeatStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
