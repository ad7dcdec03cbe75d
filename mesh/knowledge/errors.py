"""What can go wrong with notes."""

from mesh.errors import MeshError

__all__ = ["KnowledgeStoreError"]


class KnowledgeStoreError(MeshError):
    """A note cannot be kept or read: a bad key or text, or trouble with the server. The message says what to do."""
