"""How values become bytes in the store: the seam, and the codec that trusts its store. The default is `workflow.json_codec`."""

import io
import pickle
from dataclasses import dataclass, field
from typing import Any, Protocol

from persistence import PersistenceError
from workflow.errors import SerializationError

__all__ = ["OpaqueValue", "PickleSerializer", "Serializer"]


class Serializer(Protocol):
    """Turns values into bytes and back. ``context`` is partition, NUL, key: a codec may bind the bytes to their place."""

    def dumps(self, value: object, *, context: bytes = b"") -> bytes:
        """The bytes. Raises `SerializationError` naming the path to a value that cannot be kept."""
        ...

    def loads(self, data: bytes, *, context: bytes = b"") -> object:
        """The value, detached from any other. Raises `persistence.PersistenceError` for bytes that are no record."""
        ...


@dataclass(frozen=True, slots=True)
class OpaqueValue:
    """An object whose class this program does not define: its registered name and its fields, to be shown, not used.

    Errors that quote it say its name alone.
    """

    name: str
    fields: Any = field(repr=False)


class PickleSerializer:
    """Python's own serialization. The store must then be as trusted as the code: whoever writes to it can run code here."""

    def dumps(self, value: object, *, context: bytes = b"") -> bytes:
        """See `Serializer.dumps`."""
        try:
            return pickle.dumps(value)
        except (pickle.PicklingError, TypeError, AttributeError) as trouble:
            raise SerializationError(f"a value cannot be pickled: {trouble}") from trouble

    def loads(self, data: bytes, *, context: bytes = b"") -> object:
        """See `Serializer.loads`."""
        stream = io.BytesIO(data)
        try:
            value = pickle.load(stream)  # noqa: S301 - the documented trade of this codec
        except Exception as trouble:
            raise PersistenceError(f"a record is no pickle: {trouble}") from trouble
        if stream.tell() != len(data):
            raise PersistenceError(f"a record goes on after its end, at byte {stream.tell()}: it is corrupt")
        return value
