"""Where the private server listens: a unix socket in a folder of its own, and the URLs that lead to it."""

import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

STORE_DATABASE = 0
BROKER_DATABASE = 1

SOCKET_PATH_BYTES = 100
"""What fits into a socket address everywhere: 104 bytes on macOS and 108 on Linux, with a zero at the end."""

_PLAIN = re.compile(r"[/\w.-]+", re.ASCII)
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - the folder made in it is new, random and for one user only


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server behind a unix socket."""

    socket: Path

    @property
    def store_url(self) -> str:
        """The URL of the store's database, as redis-py takes it."""
        return self.redis_url(STORE_DATABASE)

    @property
    def broker_url(self) -> str:
        """The URL of the broker's database, as Celery and kombu take it."""
        return f"redis+socket://{self.socket}?virtual_host={BROKER_DATABASE}"

    def redis_url(self, database: int) -> str:
        """Return the URL of a database, as redis-py takes it."""
        return f"unix://{self.socket}?db={database}"


def socket_folder(used_before: Path | None) -> Path:
    """Return a folder for the socket that only this user can enter: the one used before where it still is right."""
    if used_before is not None and _is_private(used_before):
        return used_before
    return Path(tempfile.mkdtemp(prefix="jarvis-", dir=temporary_root(Path(tempfile.gettempdir()))))


def temporary_root(usual: Path) -> Path:
    """Return where socket folders are made: the usual place, unless its path is too long or would need quoting in a URL."""
    room_for_name = len("/jarvis-12345678/s")
    fits = len(os.fsencode(usual)) + room_for_name <= SOCKET_PATH_BYTES and _PLAIN.fullmatch(str(usual))
    return usual if fits else _SHORT_ROOT


def remove_socket_folder(folder: Path) -> None:
    """Remove a socket folder, if it is still this user's own."""
    if _is_private(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _is_private(folder: Path) -> bool:
    # The temporary folder is everybody's: what bears the name now may have been put there by another user.
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700 and found.st_uid == os.getuid()
    return private and folder.name.startswith("jarvis-")
