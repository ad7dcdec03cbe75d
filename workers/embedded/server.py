"""Starts the private server of a data folder and waits until it is the one that answers."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from workers.embedded.address import ServerAddress, remove_socket_folder, socket_folder
from workers.embedded.binary import ServerBinary, choose_binary, installed_binaries
from workers.embedded.failure import start_failure
from workers.embedded.notes import Notes
from workers.errors import ServerNotStartedError
from workers.processes import Ledger, ProcessSpec, Supervisor
from workers.processes.folders import make_private
from workers.processes.identity import alive
from workers.processes.logs import tail

ROLE = "server"
DATA = "server"
NOTES = "notes.json"
START_SECONDS = 20.0
"""How long the server may take to answer at all. Reading a large file afterwards has no limit."""

STOP_SECONDS = 20.0
"""How long the server may take to write down the last second when it is asked to end."""

_LOOK_SECONDS = 0.02
_ANSWER_SECONDS = 2.0


def start_server(
    supervisor: Supervisor,
    *,
    binary: ServerBinary | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ServerAddress:
    """Start the server of the supervisor's folder and return its address once it has read its data.

    Without a `binary` the one that wrote the data is used again, or the first that is installed. Raise
    `ServerNotFoundError` where there is none, `ServerDataError` when the server cannot read the data,
    `ServerNotStartedError` for every other failure.
    """
    data = supervisor.folder / DATA
    make_private(data)
    notes = Notes.read(data / NOTES)
    chosen = binary or choose_binary(installed_binaries(), notes.writer)
    address = _place_socket(supervisor, data, notes)
    log = supervisor.log_path(ROLE)
    log_begin = log.stat().st_size if log.exists() else 0
    argv = server_argv(chosen.path, data, address.socket)
    pid = supervisor.start(ProcessSpec(ROLE, argv, log=log, foundation=True, grace=STOP_SECONDS))
    if not _becomes_ready(supervisor, address, pid, clock, sleep):
        lines = tail(log, log_begin)
        raise start_failure(lines, log=log, data=data, version=chosen.version, writer_version=notes.writer_version)
    Notes(address.socket, chosen.path, chosen.version).write(data / NOTES)
    return address


def find_server(folder: Path) -> ServerAddress | None:
    """Return the address of the server that an owner keeps running for this data folder now, or None."""
    entries = Ledger(folder).entries()
    socket = Notes.read(folder / DATA / NOTES).socket
    running = any(entry.role == ROLE and alive(entry.pid, entry.started) for entry in entries)
    return ServerAddress(socket) if running and socket else None


def server_argv(binary: Path, data: Path, socket: Path) -> list[str]:
    """Return the command line of a server that keeps what it is given and can be reached by one user only."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-load-truncated": "yes",  # after kill -9 or a power cut the last record may be cut off
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [str(binary), *(part for name, value in options.items() for part in (f"--{name}", value))]


def _place_socket(supervisor: Supervisor, data: Path, notes: Notes) -> ServerAddress:
    """Choose where the server listens, and note it so that a folder which a killed owner left is used again."""
    folder = socket_folder(notes.socket.parent if notes.socket else None)
    supervisor.afterwards(partial(remove_socket_folder, folder))
    address = ServerAddress(folder / "s")
    replace(notes, socket=address.socket).write(data / NOTES)
    return address


def _becomes_ready(
    supervisor: Supervisor, address: ServerAddress, pid: int, clock: Callable[[], float], sleep: Callable[[float], None]
) -> bool:
    """Wait until this process has read its data; false when it ends instead. Raise when it never answers."""
    deadline = clock() + START_SECONDS
    while supervisor.exit_code(ROLE) is None:
        info = _info(address)
        answers = info.get("process_id") == pid
        if answers and info.get("loading") == 0:
            return True
        if not answers and clock() > deadline:
            raise ServerNotStartedError(
                f"The private server did not answer within {START_SECONDS:.0f} s: see {supervisor.log_path(ROLE)}"
            )
        sleep(_LOOK_SECONDS)
    return False


def _info(address: ServerAddress) -> dict[str, Any]:
    """Return what the server says of itself, and nothing as long as it does not answer."""
    client = redis.Redis(unix_socket_path=str(address.socket), socket_timeout=_ANSWER_SECONDS, retry=Retry(NoBackoff(), 0))
    with client:
        try:
            return client.info()
        except (redis.ConnectionError, redis.TimeoutError):
            return {}
