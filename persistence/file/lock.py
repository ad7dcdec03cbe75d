"""One writer at a time, among threads and processes: `flock` on a file of the store.

Each taking opens the file anew, so that threads exclude each other as processes do. The lock ends with its holder, however
that dies.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_held: set[int] = set()


@contextmanager
def locked(path: Path, *, create: bool) -> Generator[None]:
    """Hold the lock; wait for it as long as another holds it. Raises FileNotFoundError where nobody ever wrote."""
    file = _taken(path, create)
    try:
        yield
    finally:
        # Said aloud, since a child that was forked meanwhile shares the open file.
        fcntl.flock(file, fcntl.LOCK_UN)
        _close(file)


def _taken(path: Path, create: bool) -> int:
    while True:
        file = os.open(path, _FLAGS | (os.O_RDWR | os.O_CREAT if create else os.O_RDONLY), 0o600)
        _held.add(file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_current(file, path):
                return file
        except BaseException:
            _close(file)
            raise
        # Somebody removed the store while we waited: the lock of a file that is gone guards nothing.
        _close(file)


def _is_current(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


def _close(file: int) -> None:
    _held.discard(file)
    os.close(file)


def _forget_in_child() -> None:
    """A forked child must not keep its parent's lock alive."""
    for file in tuple(_held):
        _close(file)


os.register_at_fork(after_in_child=_forget_in_child)
