"""The cost of a durable run on Celery workers: four steps against a task that does nothing, on the same workers, by turns.

Rate: the workers are stopped while the messages are sent, so that only their own work is measured. Latency: from the start of
one run until its waiter has the result, against a task that pushes one word for whom a client waits. Memory: of the worker's
processes, after a first hundred runs and after the last.
"""

import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from benchmarks.measuring import ROUNDS, report, seconds
from persistence.redis import connect
from workers.broker.hints import SEGMENTS, publish
from workers.embedded import start_server
from workers.processes import Supervisor

__all__ = ["measure"]

RUNS = 500
"""Runs, and tasks, of one round."""
CALLS = 100
"""Runs that are waited for one by one, and notices, of one round."""
LONG = 10_000
"""Runs after which memory is measured."""
BATCH = 500
"""Runs that are under way at once while memory is measured."""
CONCURRENCY = 2
POOLS = ("prefork", "threads")
PATIENCE = 120.0


def measure(long: int = LONG) -> None:
    """Print the figures. ``long`` is the number of runs after which memory is measured; 0 leaves that out."""
    for pool in POOLS:
        with _mesh(pool) as mesh:
            mesh.warm_up()
            report(f"Workers ({pool}, {CONCURRENCY} places)", [*_rates(mesh), *_latencies(mesh), *_memory(mesh, long)])


class Mesh:
    """A server, one worker, and a client."""

    def __init__(self, client: Any, server: redis.Redis, worker: subprocess.Popen[bytes]) -> None:
        self._client = client
        self._server = server
        self._worker = worker
        self._celery = client.runtime.celery

    def run(self) -> Any:
        """Start a run."""
        from benchmarks.loaded import STEPS

        return self._client.start(STEPS, f"bench-{secrets.token_hex(8)}")

    def do_nothing(self) -> None:
        """Send the task that does nothing."""
        from benchmarks.loaded import NOOP

        publish(self._celery, NOOP, SEGMENTS, [])

    def notice(self, token: str) -> None:
        """Send the task that says that it was executed."""
        from benchmarks.loaded import NOTICE

        publish(self._celery, NOTICE, SEGMENTS, [token])

    def heard(self, token: str, times: int = 1) -> None:
        """Wait for notices."""
        from benchmarks.loaded import HEARD

        for _ in range(times):
            if self._server.blpop([f"{HEARD}:{token}"], timeout=PATIENCE) is None:
                raise TimeoutError(f"the worker did not execute a notice within {PATIENCE:g} s")

    def warm_up(self) -> None:
        """Have every process of the worker done some of each."""
        self.drained(self.run, 200)
        self.drained(self.do_nothing, 200)

    def drained(self, send: Callable[[], object], times: int) -> float:
        """The seconds that the worker takes for so many messages, which are there when it begins."""
        token = secrets.token_hex(4)
        with self._stopped():
            for _ in range(times):
                send()
            # Queues are in order: when each place has taken a notice, all before it was taken.
            for _ in range(CONCURRENCY):
                self.notice(token)
        return seconds(lambda: self.heard(token, CONCURRENCY))

    def memory(self) -> list[float]:
        """The resident memory of the worker's processes, the parent first (MiB)."""
        children = Path(f"/proc/{self._worker.pid}/task/{self._worker.pid}/children").read_text().split()
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in (self._worker.pid, *children)]
        return [count * os.sysconf("SC_PAGESIZE") / 2**20 for count in pages]

    @contextmanager
    def _stopped(self) -> Generator[None]:
        os.killpg(self._worker.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._worker.pid, signal.SIGCONT)


def _rates(mesh: Mesh) -> list[tuple[str, str]]:
    nothing, runs = [], []
    for _ in range(ROUNDS):
        nothing.append(RUNS / mesh.drained(mesh.do_nothing, RUNS))
        runs.append(RUNS / mesh.drained(mesh.run, RUNS))
    ratio = statistics.median(ours / theirs for ours, theirs in zip(runs, nothing, strict=True))
    return [
        ("tasks that do nothing", f"{statistics.median(nothing):.0f} a second"),
        ("runs of four steps", f"{statistics.median(runs):.0f} a second, {ratio:.2f} times that (median of {ROUNDS})"),
    ]


def _latencies(mesh: Mesh) -> list[tuple[str, str]]:
    tokens = [secrets.token_hex(4) for _ in range(CALLS)]
    notices, runs = [], []
    for _ in range(ROUNDS):
        notices.append(
            statistics.median(seconds(lambda token=token: (mesh.notice(token), mesh.heard(token))) for token in tokens)
        )
        runs.append(statistics.median(seconds(lambda: mesh.run().wait(PATIENCE)) for _ in range(CALLS)))
    ratio = statistics.median(ours / theirs for ours, theirs in zip(runs, notices, strict=True))
    return [
        ("a task, sent and answered", f"{statistics.median(notices) * 1e3:.1f} ms"),
        ("a run, started and waited for", f"{statistics.median(runs) * 1e3:.1f} ms, {ratio:.2f} times that"),
    ]


def _memory(mesh: Mesh, long: int) -> list[tuple[str, str]]:
    if not long:
        return []
    before = mesh.memory()
    for _ in range(long // BATCH):
        mesh.drained(mesh.run, BATCH)
    after = mesh.memory()
    shown = ", ".join(f"{one:.0f} to {other:.0f} MiB" for one, other in zip(before, after, strict=True))
    return [(f"memory of its processes over {long} more runs", shown)]


@contextmanager
def _mesh(pool: str) -> Generator[Mesh]:
    with tempfile.TemporaryDirectory(prefix="jarvis-bench-") as folder, Supervisor(Path(folder)) as supervisor:
        url = start_server(supervisor).store_url
        os.environ.update(_environment(url, folder))
        from workers import MeshClient, Settings

        with _worker(pool, Path(folder)) as worker:
            client, server = MeshClient(Settings.load()), connect(url, socket_timeout=None)
            yield Mesh(client, server, worker)  # pyright: ignore[reportArgumentType]
            client.close()
            server.close()


def _environment(url: str, folder: str) -> dict[str, str]:
    return {
        "JARVIS_REDIS_URL": url,
        "JARVIS_HOME": folder,
        "JARVIS_MODULES": "workers.definitions,benchmarks.loaded",
        "JARVIS_LOG_FORMAT": "json",
    }


@contextmanager
def _worker(pool: str, folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """A worker as it is used: the product's own, at its usual level of logs, written to a file."""
    log = folder / "worker.log"
    argv = [sys.executable, "-m", "celery", "-A", "workers", "worker", "--pool", pool, "--concurrency", str(CONCURRENCY)]
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [*argv, "--loglevel", "INFO"], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while " ready." not in log.read_text():
            if worker.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"the worker did not begin: {log.read_text()[-500:]}")
            time.sleep(0.05)
        yield worker
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


if __name__ == "__main__":
    measure(*(int(number) for number in sys.argv[1:]))
