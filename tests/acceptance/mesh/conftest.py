"""A mesh of real processes on a real server: started by a test, killed by it, and gone after it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import redis

from workers import MeshClient, Settings
from workers.composition import Runtime
from workers.settings import broker_beside

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PATIENCE = 60.0


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., None]:
    """`until`, for tests: they cannot import this file."""
    return until


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Poll a condition until it holds; fail saying what did not happen."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}"
        time.sleep(0.02)


@dataclass
class Process:
    """A process in a session of its own, with its output in a file."""

    popen: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """kill -9, the whole family."""
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def output(self) -> str:
        return self.log.read_text()


@dataclass
class Mesh:
    """What a test starts, and the client it uses."""

    url: str
    folder: Path
    client: MeshClient
    redis: redis.Redis
    environment: Mapping[str, str]
    processes: list[Process] = field(default_factory=list)

    def spawn(self, name: str, *argv: str, **environment: str) -> Process:
        log = self.folder / f"{name}-{len(self.processes)}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [sys.executable, *argv],
                cwd=self.folder,
                env={**os.environ, **self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = Process(popen, log)
        self.processes.append(process)
        return process

    def worker(self, pool: str = "threads") -> Process:
        flags = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "INFO")
        process = self.spawn("worker", "-m", "celery", "-A", "workers", "worker", "--pool", pool, "--concurrency", "2", *flags)
        until(lambda: " ready." in process.output(), f"the worker is ready: {process.output()}")
        return process

    def sweeper(self) -> Process:
        return self.spawn("sweeper", "-m", "workers", "sweeper")

    def asked(self) -> list[str]:
        return [role.decode() for role in self.redis.lrange("test:asked", 0, -1)]

    def hold(self, role: str) -> None:
        self.redis.set(f"test:hold:{role}", "1")

    def release(self, role: str) -> None:
        self.redis.delete(f"test:hold:{role}")

    def end(self) -> None:
        for process in self.processes:
            family = [process.popen.pid, *(child.pid for child in _children(process.popen.pid))]
            for pid in family:
                _kill(pid)
            process.popen.wait()
        self.client.close()
        self.redis.close()


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def make_mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Mesh]]:
    """Make a mesh on the server at a URL."""
    made: list[Mesh] = []

    def make(url: str) -> Mesh:
        environment = {
            "JARVIS_REDIS_URL": url,
            "JARVIS_BROKER_URL": broker_beside(url),
            "JARVIS_HOME": str(tmp_path),
            "JARVIS_MODULES": "workers.definitions,scripted_mesh",
            "JARVIS_SWEEP_EVERY": "0.2",
            "JARVIS_HEARTBEAT_EVERY": "1",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(str(HERE))
        client = MeshClient(runtime=Runtime(Settings.load()))
        mesh = Mesh(url, tmp_path, client, redis.Redis.from_url(url), environment)
        made.append(mesh)
        return mesh

    yield make
    for mesh in made:
        mesh.end()


@pytest.fixture
def mesh(make_mesh: Callable[[str], Mesh], redis_url: str) -> Mesh:
    """A mesh without processes on an empty server."""
    return make_mesh(redis_url)
