"""Notes that agents share: `mesh.ports.JarvisKnowledgeStore` in memory and in Redis."""

from typing import TYPE_CHECKING, Any

from mesh.knowledge.errors import KnowledgeStoreError
from mesh.knowledge.memory import InMemoryKnowledgeStore

if TYPE_CHECKING:
    from mesh.knowledge.redis import RedisKnowledgeStore

__all__ = ["InMemoryKnowledgeStore", "KnowledgeStoreError", "RedisKnowledgeStore"]


def __getattr__(name: str) -> Any:
    """`RedisKnowledgeStore` on demand, so that the others do not load a Redis client (PEP 562)."""
    if name == "RedisKnowledgeStore":
        from mesh.knowledge.redis import RedisKnowledgeStore

        return RedisKnowledgeStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
