"""How figures are taken: a private server, several rounds, and a table."""

import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import redis

from persistence.redis import connect
from workers.embedded import start_server
from workers.processes import Supervisor

ROUNDS = 5


@contextmanager
def private_server() -> Generator[redis.Redis]:
    """A client of an empty server of our own."""
    with tempfile.TemporaryDirectory(prefix="jarvis-bench-") as folder, Supervisor(Path(folder)) as supervisor:
        client = connect(start_server(supervisor).store_url)
        yield client
        client.close()


def seconds(act: Callable[[], object]) -> float:
    """The duration of an act."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def report(title: str, rows: list[tuple[str, str]]) -> None:
    """Print one table."""
    print(f"\n{title}")
    width = max(len(name) for name, _ in rows)
    for name, figure in rows:
        print(f"  {name:<{width}}  {figure}")
