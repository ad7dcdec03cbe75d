"""Workers in processes of their own, on brokers that a test may stop, freeze, kill and replace.

The store is a server apart from the broker, so that what becomes of the broker is all that a worker notices.
"""

import datetime as dt
import fcntl
import ipaddress
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kombu
import psutil
import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from workers import MeshClient, Settings
from workers.composition import Runtime
from workers.embedded import installed_binaries
from workers.processes import ProcessSpec, Supervisor

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATIENCE = 30.0
RABBITMQ_URL = os.environ.get("JARVIS_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672//")


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., None]:
    """`until`, for tests: they cannot import this file."""
    return until


def until(condition: Callable[[], object], what: object = "", patience: float = PATIENCE) -> None:
    """Poll a condition until it holds; fail saying what did not happen."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what() if callable(what) else what}"
        time.sleep(0.02)


def free_port() -> int:
    """A port that the system does not give to connections: while its server is down, one could hold it."""
    while True:
        port = 10000 + secrets.randbelow(20000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


# --- servers ----------------------------------------------------------------------------------------------------------------


@dataclass
class Server:
    """A Redis of the test's own, on a port that stays the same when it is started again."""

    supervisor: Supervisor
    folder: Path
    port: int
    binary: Path
    options: tuple[str, ...] = ()
    pid: int = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        lasting = ["--dir", str(self.folder), "--save", "", "--appendonly", "yes"]
        # A replica gets its data at once: no second one is waited for.
        argv = [str(self.binary), *lasting, "--repl-diskless-sync-delay", "0", *self.options]
        name = f"{self.folder.name}-{secrets.token_hex(4)}"
        plain = [] if "--tls-port" in self.options else ["--port", str(self.port)]
        # Without grace: nobody needs its data, and one that follows another primary anew does not end when asked.
        self.pid = self.supervisor.start(ProcessSpec(name, [*argv, *plain], log=self.folder / "log", grace=0))
        until(self.answers, f"a server at {self.port}: {self.folder / 'log'}")

    def answers(self) -> bool:
        if "--tls-port" in self.options:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0
        with suppress(redis.RedisError), self.client() as client:
            return client.info()["process_id"] == self.pid
        return False

    def client(self) -> redis.Redis:
        return redis.Redis("127.0.0.1", self.port)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        until(lambda: not psutil.pid_exists(self.pid) or psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE, "it ends")


@dataclass
class Servers:
    """Starts servers, which end with the test."""

    supervisor: Supervisor
    folder: Path

    def __call__(self, *options: str, port: int | None = None) -> Server:
        port = port or free_port()
        server = Server(self.supervisor, self.folder / f"server-{port}", port, installed_binaries()[0].path, options)
        server.start()
        return server

    @staticmethod
    def free_port() -> int:
        return free_port()

    def sentinel(self, config: str) -> Server:
        port = free_port()
        folder = self.folder / f"sentinel-{port}"
        folder.mkdir()
        (folder / "sentinel.conf").write_text(config)
        server = Server(self.supervisor, folder, port, installed_binaries()[0].path)
        argv = [str(server.binary), str(folder / "sentinel.conf"), "--sentinel", "--port", str(port)]
        server.pid = self.supervisor.start(ProcessSpec(folder.name, argv, log=folder / "log"))
        until(server.answers, f"a Sentinel at {port}: {folder / 'log'}")
        return server


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Servers]:
    """Start a server; it ends with the test."""
    with Supervisor(tmp_path / "servers") as supervisor:
        yield Servers(supervisor, tmp_path)


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A folder with a certificate of 127.0.0.1 that signs itself: `cert.pem`, and its key: `key.pem`."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(secret)
    return tmp_path


class Proxy:
    """Passes TCP on to a port. Once frozen, the connections that stand pass nothing on, and stay open; new ones work."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._links: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._frozen: set[socket.socket] = set()
        self._all = False
        self._run(self._accept)

    def freeze(self) -> None:
        self._frozen.update(*self._links)

    def freeze_all(self) -> None:
        """New connections too."""
        self._all = True
        self.freeze()

    def cut(self) -> None:
        """End the connections that stand."""
        for link in list(self._links):
            for end in link:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *(end for link in self._links for end in link)):
            end.close()

    def _run(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                link = self._listener.accept()[0], socket.create_connection(("127.0.0.1", self._target))
                self._links.append(link)
                if self._all:
                    self._frozen.update(link)
                self._run(self._pass, *link)
                self._run(self._pass, *reversed(link))

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if source not in self._frozen:
                    sink.sendall(data)
            if source not in self._frozen:
                sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def make_proxy() -> Iterator[Callable[[int], Proxy]]:
    """A proxy before a port."""
    with ExitStack() as stack:

        def make(port: int) -> Proxy:
            proxy = Proxy(port)
            stack.callback(proxy.close)
            return proxy

        yield make


@pytest.fixture
def rabbitmq_url() -> Iterator[str]:
    """The server's URL, without queues of ours before the test and after it; for one test of this machine at a time."""
    with Path(tempfile.gettempdir(), "jarvis-tests-rabbitmq.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_queues()
        yield RABBITMQ_URL
        remove_queues()


def remove_queues() -> None:
    with kombu.Connection(RABBITMQ_URL) as connection:
        for name in ("segments", "sweeps", "segments.malformed", "sweeps.malformed"):
            connection.default_channel.queue_delete(name)
        for name in ("segments", "sweeps"):
            connection.default_channel.exchange_delete(name)


# --- processes --------------------------------------------------------------------------------------------------------------


@dataclass
class Worker:
    """A worker with its children, in a session of its own, with its output in a file."""

    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    def output(self) -> str:
        return self.log.read_text()

    def children(self) -> list[int]:
        return [child.pid for child in psutil.Process(self.pid).children()]

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()


@dataclass
class Work:
    """A store with runs, and workers."""

    folder: Path
    client: MeshClient
    store: redis.Redis
    environment: Mapping[str, str]
    workers: list[Worker] = field(default_factory=list)

    def spawn(self, *argv: str, **environment: str) -> Worker:
        log = self.folder / f"worker-{secrets.token_hex(4)}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [sys.executable, "-m", *argv],
                cwd=self.folder,
                env={**os.environ, **self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        worker = Worker(popen, log)
        self.workers.append(worker)
        return worker

    def spawn_worker(self, pool: str = "threads", **environment: str) -> Worker:
        flags = ("--pool", pool, "--concurrency", "2", "--loglevel", "INFO")
        return self.spawn("celery", "-A", "workers", "worker", *flags, **environment)

    def ready(self, worker: Worker) -> None:
        until(lambda: " ready." in worker.output(), worker.output)

    def worker(self, pool: str = "threads", **environment: str) -> Worker:
        worker = self.spawn_worker(pool, **environment)
        self.ready(worker)
        return worker

    def start(self, workflow_id: str) -> Any:
        return self.client.start("held", workflow_id)

    def done(self, workflow_id: str, patience: float = PATIENCE) -> float:
        """Start a run, wait for its end, and say how many seconds that took."""
        began = time.monotonic()
        assert self.start(workflow_id).wait(patience).result == "done"
        return time.monotonic() - began

    def began(self) -> list[int]:
        return [int(pid) for pid in self.store.lrange("test:began", 0, -1)]

    def hold(self) -> None:
        self.store.set("test:hold", 1)

    def release(self) -> None:
        self.store.delete("test:hold")


@pytest.fixture
def make_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_url: str) -> Iterator[Callable[..., Work]]:
    """Make what a test works with, on the broker at a URL."""
    with ExitStack() as stack:

        def make(broker: str, **more: str) -> Work:
            environment = {
                "JARVIS_REDIS_URL": redis_url,
                "JARVIS_BROKER_URL": broker,
                "JARVIS_HOME": str(tmp_path),
                "JARVIS_MODULES": "workers.definitions,scripted_work",
                "JARVIS_SWEEP_EVERY": "0.2",
                "JARVIS_PROBE_EVERY": "1",
                "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
                **more,
            }
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            monkeypatch.syspath_prepend(str(HERE))
            work = Work(tmp_path, MeshClient(runtime=Runtime(Settings.load())), redis.Redis.from_url(redis_url), environment)
            stack.callback(work.client.close)
            stack.callback(work.store.close)
            stack.callback(lambda: [worker.end() for worker in work.workers])
            return work

        yield make
