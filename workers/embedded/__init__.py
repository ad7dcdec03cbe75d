"""The private server: a Valkey or Redis that one data folder has to itself, for a mesh that was given no server.

It listens on a unix socket in a folder that only its user can enter, keeps an append-only file in the data folder, and
runs under the supervisor of that folder: it ends with its owner and is started again where it was. Database 0 is for
the store, database 1 for the broker.

Names load at first use: `start_server` needs the Redis client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workers.embedded.address import ServerAddress
    from workers.embedded.binary import ServerBinary, installed_binaries
    from workers.embedded.server import find_server, start_server

__all__ = ["ServerAddress", "ServerBinary", "find_server", "installed_binaries", "start_server"]

_HOMES = {
    "ServerAddress": "address",
    "ServerBinary": "binary",
    "find_server": "server",
    "installed_binaries": "binary",
    "start_server": "server",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
