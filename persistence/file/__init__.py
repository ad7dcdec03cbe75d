"""The store in a directory of one machine: no server, shared by processes, safe against crashes."""

from persistence.file.address import directory_of
from persistence.file.store import FilePersistence

__all__ = ["FilePersistence", "directory_of"]
