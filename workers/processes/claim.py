"""One owner per data folder: a lock that the kernel gives back at the owner's death, and the name of who holds it."""

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workers.errors import FolderInUseError
from workers.processes.folders import make_private, usable
from workers.processes.identity import alive, file_id, started

PATIENCE_SECONDS = 30.0
"""How long a claim waits for the guardian of a dead owner to finish."""

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Claim:
    """The ownership of a data folder. `lock` is the open file that holds it; a process that inherits it holds it too."""

    folder: Path
    lock: int

    def release(self) -> None:
        """Give the folder back, as far as this process holds it, and take the name off it."""
        os.ftruncate(self.lock, 0)
        os.close(self.lock)


def claim_folder(
    folder: Path, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> Claim:
    """Make the data folder where there is none, and own it.

    Raise `FolderInUseError` at once when a living process owns it, and after a while when what a dead one left keeps it;
    `FolderUnusableError` when it cannot be made or written.
    """
    folder = folder.absolute()
    deadline = clock() + PATIENCE_SECONDS
    path = folder / "owner.lock"
    while (lock := _try_lock(path)) is None:
        _refuse_living_owner(path)
        if clock() > deadline:
            raise FolderInUseError(
                f"What an earlier run left still holds {folder}: wait a moment and try again, or see `fuser {path}`.", None
            )
        sleep(POLL_SECONDS)
    # A dying owner lets go of its files a little before its children can see that it is dead (see `launch`).
    while owner_of(folder) is not None and clock() < deadline:
        sleep(POLL_SECONDS)
    with usable(path):
        _sign(lock)
    return Claim(folder, lock)


def owner_of(folder: Path) -> int | None:
    """Return the pid of the living process that owns the data folder, or None."""
    path = folder / "owner.lock"
    try:
        holder = json.loads(path.read_bytes())
        pid, since, file = int(holder["pid"]), str(holder["started"]), str(holder["file"])
        here = file_id(path)
    except (OSError, ValueError, KeyError, TypeError):  # nobody owns it, or the new owner is just writing its name
        return None
    # A copy of a folder in use bears the name of an owner that is none of its own.
    return pid if file == here and alive(pid, since) else None


def _refuse_living_owner(path: Path) -> None:
    pid = owner_of(path.parent)
    if pid is not None:
        raise FolderInUseError(
            f"{path.parent} is in use by process {pid}: stop it (Ctrl-C there, or `kill {pid}`) or choose another folder.", pid
        )


def _sign(lock: int) -> None:
    content = {"pid": os.getpid(), "started": started(os.getpid()), "file": file_id(lock)}
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(content).encode(), 0)


def _try_lock(path: Path) -> int | None:
    """Return the open lock file, or None while another process holds it."""
    make_private(path.parent)
    with usable(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _takes(lock, path):
            return lock
        os.close(lock)
        return None


def _takes(lock: int, path: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A folder that was removed meanwhile took its lock file along: a lock on that one keeps nobody out.
        return os.path.samestat(os.fstat(lock), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
