"""The Redis that everything rests on: killed, ended and frozen, and started again with what it had written down.

It syncs before it answers: what this ring promises is promised for a server that loses nothing which it has acknowledged.
"""

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.chaos.waiting import until
from workers.embedded import installed_binaries

__all__ = ["Server"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One server, on a port that stays the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    @property
    def url(self) -> str:
        """Its address without a proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self, database: int = 0) -> redis.Redis:
        """A client without a proxy."""
        return redis.Redis("127.0.0.1", self.port, db=database)

    def start(self) -> None:
        """Start, and wait until it has read its data."""
        options = {"port": str(self.port), "bind": "127.0.0.1", "dir": str(self._folder), "save": "", "appendonly": "yes"}
        argv = [part for name, value in {**options, "appendfsync": "always"}.items() for part in (f"--{name}", value)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([str(installed_binaries()[0].path), *argv], stdout=log, start_new_session=True)
        until(self.answers, f"a server at {self.port}: {self._folder / 'log'}")

    def answers(self) -> bool:
        """Whether this very process answers."""
        asking = redis.Redis("127.0.0.1", self.port, socket_timeout=2, retry=Retry(NoBackoff(), 0))
        with suppress(redis.RedisError), asking as client:
            return self._process is not None and client.info()["process_id"] == self._process.pid
        return False

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def end(self, number: int) -> None:
        """End the process with a signal, and wait for its end."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(number)
            self._process.wait(20)
