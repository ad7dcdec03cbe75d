"""What can go wrong with heartbeats."""

from mesh.errors import MeshError

__all__ = ["HeartbeatStoreError"]


class HeartbeatStoreError(MeshError):
    """A beat cannot be recorded or read: a bad name or time, or trouble with the server. The message says what to do."""
