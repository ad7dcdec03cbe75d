"""The file of one partition: a line for schedulers, a line of keys, then the values one behind the other.

line    content
first   checksum, JSON: version, partition, the token of the write that made the file, the index entry
second  checksum of itself and of all values, JSON: key -> length of its value, in the order of the values
"""

import json
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast
from zlib import crc32

from persistence.contract import IndexEntry
from persistence.errors import PersistenceError

__all__ = ["Head", "PartitionFile", "read_head", "read_partition"]

VERSION = 1
CHECKSUM = 8
"""Hexadecimal digits in front of a line."""


@dataclass(frozen=True, slots=True)
class Head:
    """What can be known without reading the records."""

    partition: str
    token: str
    index: IndexEntry | None = None


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """All of one partition."""

    head: Head
    records: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def encoded(self) -> bytes:
        """The bytes of the file."""
        index = self.head.index
        head = {
            "version": VERSION,
            "partition": self.head.partition,
            "token": self.head.token,
            "index": index and [index.due, index.name, index.status, index.tag, index.summary, index.awaits],
        }
        values = b"".join(self.records.values())
        lengths = json.dumps({key: len(value) for key, value in self.records.items()}).encode()
        return _line(json.dumps(head).encode()) + _line(lengths, values) + values


def read_head(file: BinaryIO) -> Head:
    """The first line of a file. Raises `PersistenceError` when it is not what was written."""
    try:
        stored = cast(dict[str, Any], json.loads(_checked(file.readline())))
        if stored["version"] != VERSION:
            raise PersistenceError(f"is of version {stored['version']!r}: update this program")
        partition: str = stored["partition"]
        entry = cast(list[Any] | None, stored["index"])
        return Head(partition, stored["token"], IndexEntry(partition, *entry) if entry else None)
    except (ValueError, KeyError, TypeError) as trouble:
        raise PersistenceError(f"is corrupt in its first line ({trouble}): restore it from a backup") from trouble


def read_partition(file: BinaryIO) -> PartitionFile:
    """A whole file. Raises `PersistenceError` when it is not what was written."""
    head = read_head(file)
    line, values = file.readline(), file.read()
    try:
        lengths = cast(dict[str, int], json.loads(_checked(line, values)))
    except ValueError as trouble:
        raise PersistenceError(f"is corrupt behind its first line ({trouble}): restore it from a backup") from trouble
    records: dict[str, bytes] = {}
    start = 0
    for key, length in lengths.items():
        records[key] = values[start : start + length]
        start += length
    return PartitionFile(head, records)


def _line(text: bytes, behind: bytes = b"") -> bytes:
    return b"%08x %b\n" % (crc32(behind, crc32(text)), text)


def _checked(line: bytes, behind: bytes = b"") -> bytes:
    """The text of a line whose checksum holds. Raises ValueError."""
    text = line[CHECKSUM + 1 : -1]
    if line != _line(text, behind):
        raise ValueError("its checksum is wrong")
    return text
