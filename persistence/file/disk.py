"""Everything the store does to its disk, one operation a method, each of them durable when it returns.

Tests put another disk in its place that fails, or dies, at any of them.
"""

import os
from contextlib import suppress
from errno import ENOTDIR
from pathlib import Path

__all__ = ["Disk"]

_PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600
_COMMON = os.O_CLOEXEC | os.O_NOFOLLOW


class Disk:
    """Operations on files and folders. They raise `OSError`."""

    def make_folder(self, folder: Path) -> None:
        """Make a folder and what is missing above it, for this user alone."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        with suppress(FileExistsError):
            folder.mkdir(_PRIVATE_FOLDER)
        if not folder.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(folder))
        self.settle(folder.parent)

    def create(self, path: Path, data: bytes) -> None:
        """Make a file anew, whatever a crash has left under its name. The folder still has to be settled."""
        path.unlink(missing_ok=True)
        self._write(path, os.O_EXCL | os.O_CREAT, 0, data)

    def append(self, path: Path, place: int, data: bytes) -> None:
        """Write behind the first ``place`` bytes of a file. The folder of a new file still has to be settled."""
        self._write(path, 0 if place else os.O_CREAT, place, data)

    def cut(self, path: Path, length: int) -> None:
        """Forget what a file holds behind its first ``length`` bytes."""
        file = os.open(path, os.O_WRONLY | _COMMON)
        try:
            os.ftruncate(file, length)
            os.fsync(file)
        finally:
            os.close(file)

    def move(self, source: Path, target: Path) -> None:
        """Put a file in the place of another, at one moment. The folder still has to be settled."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a link and not what it leads to. The folder still has to be settled."""
        path.unlink()

    def settle(self, folder: Path) -> None:
        """Make durable which files a folder holds."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def _write(self, path: Path, flags: int, place: int, data: bytes) -> None:
        file = os.open(path, os.O_WRONLY | flags | _COMMON, _PRIVATE_FILE)
        try:
            rest = memoryview(data)
            while rest:
                written = os.pwrite(file, rest, place)
                place, rest = place + written, rest[written:]
            os.fsync(file)
        finally:
            os.close(file)
