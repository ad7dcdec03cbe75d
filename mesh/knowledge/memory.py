"""Notes in the memory of one process."""

from mesh.knowledge.notes import check_key, check_note

__all__ = ["InMemoryKnowledgeStore"]


class InMemoryKnowledgeStore:
    """`mesh.ports.JarvisKnowledgeStore` in a dictionary."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}

    def put(self, key: str, value: str) -> None:
        """See `JarvisKnowledgeStore.put`."""
        check_note(key, value)
        self._notes[key] = value

    def get(self, key: str) -> str | None:
        """See `JarvisKnowledgeStore.get`."""
        check_key(key)
        return self._notes.get(key)
