"""The files of one log: segments that only grow, the oldest removed as a whole.

A segment is named by its number. Each line is one entry: its place in the segment, a checksum, its data in base64. A position
is a segment's number and the byte behind the entry. What stands in the segments is committed, unless the store's undo note
says otherwise (`persistence.file.undo`).
"""

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from persistence.contract import LogEntry
from persistence.errors import PersistenceError

__all__ = ["Addition", "LogFiles"]

_POSITION = re.compile(r"([1-9][0-9]{0,17})-([1-9][0-9]{0,17})")
_SEGMENT = re.compile(r"([1-9][0-9]{0,17})\.log")
_TAIL = 4096
"""Bytes that are first read from the end to find the last line."""


@dataclass(frozen=True, slots=True)
class Addition:
    """What one write adds to one segment, which is ``length`` bytes long before."""

    path: Path
    length: int
    data: bytes


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The segments of one log, each of about ``limit`` entries."""

    folder: Path
    limit: int

    def addition(self, entries: list[bytes]) -> Addition:
        """How these entries are to be appended: to the last segment, or to a new one when that is full."""
        last = max(self._segments(), default=1)
        path = self._path(last)
        length = path.stat().st_size if path.exists() else 0
        count = self._count(path, length)
        if count >= self.limit:
            path, length, count = self._path(last + 1), 0, 0
        lines = (_line(place, data) for place, data in enumerate(entries, count + 1))
        return Addition(path, length, b"".join(lines))

    def outdated(self) -> list[Path]:
        """Segments whose entries are too old to be kept: all but the last two."""
        return [self._path(number) for number in sorted(self._segments())[:-2]]

    def read(self, after: str | None, limit: int) -> list[LogEntry]:
        """Entries behind a position. Raises ValueError for a position that this log never gave."""
        segments = sorted(self._segments())
        start, place = _place(after) if after is not None else (0, 0)
        if segments and start > segments[-1]:
            raise _no_position(f"{start}-{place}")
        entries: list[LogEntry] = []
        for number in segments:
            if number >= start and len(entries) < limit:
                entries += self._read_segment(number, place if number == start else 0, limit - len(entries))
        return entries

    def _read_segment(self, number: int, place: int, limit: int) -> list[LogEntry]:
        with self._path(number).open("rb") as file:
            if place:
                file.seek(place - 1)
                if file.read(1) != b"\n":
                    raise _no_position(f"{number}-{place}")
            return self._read_lines(file, number, limit)

    def _read_lines(self, file: BinaryIO, number: int, limit: int) -> list[LogEntry]:
        entries: list[LogEntry] = []
        while len(entries) < limit and (line := file.readline()):
            data = self._checked(self._path(number), line)[1]
            entries.append(LogEntry(f"{number}-{file.tell()}", data))
        return entries

    def _count(self, path: Path, length: int) -> int:
        """How many entries a segment holds, as its last line says."""
        if not length:
            return 0
        step = _TAIL
        with path.open("rb") as file:
            while True:
                file.seek(max(0, length - step))
                _, ended, line = file.read(length)[:-1].rpartition(b"\n")
                if ended or step >= length:
                    return self._checked(path, line + b"\n")[0]
                step *= 8

    def _checked(self, path: Path, line: bytes) -> tuple[int, bytes]:
        place, _, rest = line.partition(b" ")
        checksum, _, data = rest.partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % crc32(place + data[:-1]):
            raise PersistenceError(f"the log file {str(path)!r} is corrupt: restore it from a backup")
        return int(place), b64decode(data)

    def _segments(self) -> list[int]:
        found = (_SEGMENT.fullmatch(path.name) for path in self.folder.iterdir()) if self.folder.exists() else ()
        return [int(match[1]) for match in found if match]

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.log"


def _line(place: int, data: bytes) -> bytes:
    number, encoded = b"%d" % place, b64encode(data)
    return b"%b %08x %b\n" % (number, crc32(number + encoded), encoded)


def _place(position: str) -> tuple[int, int]:
    match = _POSITION.fullmatch(position)
    if match is None:
        raise _no_position(position)
    return int(match[1]), int(match[2])


def _no_position(position: str) -> ValueError:
    return ValueError(f"{position!r} is not a position of this log: hand back one that read_log gave")
