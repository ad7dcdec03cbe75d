"""The log files of child processes: private, appended to, kept from growing for ever, and read for their last word."""

import os
from pathlib import Path
from typing import IO

from workers.processes.folders import make_private, usable

LARGEST_BYTES = 10 * 1024 * 1024
"""A log of this size is set aside as `<name>.log.1` at the next start."""

_TAIL_BYTES = 8192


def open_log(path: Path) -> IO[bytes]:
    """Open a log to append to, in a folder that only its user can read."""
    make_private(path.parent)
    with usable(path):
        if path.exists() and path.stat().st_size > LARGEST_BYTES:
            path.replace(path.with_name(f"{path.name}.1"))
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab", buffering=0)


def tail(path: Path, since: int = 0) -> list[str]:
    """Return the last lines of a log that are not empty, of those written after its first `since` bytes."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            begin = since if since <= end else 0  # the log was set aside meanwhile
            file.seek(max(begin, end - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [line.strip() for line in lines if line.strip()]
