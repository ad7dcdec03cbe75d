"""Cases from the field: messages that come again, brokers that come back, tasks that kill their worker."""

import asyncio
import datetime as dt
import itertools
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes
from typing import Any

import pytest
import redis
from aiosmtpd.smtp import SMTP
from redis.exceptions import OutOfMemoryError

from mesh.watchdog import STALE_TOPIC
from workers.schedules.watchdog import sweep_watchdog
from workers.segments import run_segment
from workers.signals.consumers import heartbeat_consumer
from workers.signals.outcry import Outcry
from workflow import WorkflowStatus

pytestmark = pytest.mark.processes

MODULES = "workers.definitions,scripted_work,field_messages"
VISIBILITY = 1
"""Seconds after which the broker of these tests hands out again what was not acknowledged."""


@pytest.fixture
def mailbox() -> Iterator[Any]:
    """Yield a mail server on loopback; ``subjects`` are those of the messages that it took."""

    class Inbox:
        def __init__(self) -> None:
            self.subjects: list[str] = []
            self.port = 0

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the library's name
            self.subjects.append(str(message_from_bytes(envelope.content)["Subject"]))
            return "250 OK"

    inbox, loop = Inbox(), asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: SMTP(inbox, loop=loop), "127.0.0.1", 0))
    inbox.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield inbox
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def started(work: Any, workflow_id: str, event: Any = None, *, hold: bool = False) -> Any:
    if hold:
        (work.folder / f"hold.{workflow_id}").touch()
    return work.client.start("mailing", workflow_id, event)


def alerts_to(mailbox: Any) -> str:
    """The settings with which alerts go to a mailbox."""
    urls = [f"mailto://127.0.0.1:{mailbox.port}?from=jarvis@example.com&to=mara@example.com&mode=insecure"]
    return json.dumps({"urls": urls})


def let_go(work: Any, workflow_id: str) -> None:
    (work.folder / f"hold.{workflow_id}").unlink()


def pushed(work: Any, key: str, workflow_id: str) -> int:
    """How often a list of `field_messages` names a run."""
    return [line.split()[0] for line in work.store.lrange(key, 0, -1)].count(workflow_id.encode())


class Asked:
    """A store, and what it was asked."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)


# --- E1: a long or delayed task is handed out again while it runs -------------------------------------------------------------


@pytest.fixture
def impatient(make_work: Any, make_server: Any, mailbox: Any) -> Any:
    """Return work whose broker soon hands out again what is not acknowledged."""
    broker = make_server()
    more = {"FIELD_VISIBILITY": str(VISIBILITY), "FIELD_MAIL": str(mailbox.port)}
    work = make_work(broker.url, JARVIS_MODULES=MODULES, **more)
    work.unacknowledged = lambda: broker.client().hlen("jarvis:broker:unacked")
    return work


@pytest.mark.parametrize("acknowledged", ["early", "late"])
def test_e1_a_node_that_outlasts_the_visibility_timeout_runs_once_and_mails_once(
    impatient: Any, mailbox: Any, until: Any, acknowledged: str
) -> None:
    # Late acknowledgement is none of ours: it shows that the broker of this test does hand out again, and what then holds.
    late = {"FIELD_LATE": "1"} if acknowledged == "late" else {}
    first = impatient.worker(**late)
    handle = started(impatient, "long", hold=True)
    until(lambda: pushed(impatient, "field:began", "long"), first.output)
    since = time.monotonic()
    assert impatient.unacknowledged() == len(late)

    second = impatient.worker(**late)
    until(lambda: time.monotonic() > since + 3 * VISIBILITY)
    if late:
        until(lambda: pushed(impatient, "field:taken", "long") > 1, second.output)
    lease = handle.snapshot().lease_expires_at
    until(lambda: handle.snapshot().lease_expires_at > lease, first.output)  # whatever came again took nothing away
    let_go(impatient, "long")

    assert handle.wait(30).result == first.pid
    assert handle.snapshot().execution_attempt == 1
    impatient.done("behind")
    assert pushed(impatient, "field:began", "long") == 1
    assert mailbox.subjects == ["long"]
    if not late:
        assert pushed(impatient, "field:taken", "long") == 1


def test_e1_a_timer_that_outlasts_the_visibility_timeout_wakes_its_run_once(impatient: Any, mailbox: Any, until: Any) -> None:
    from field_messages import Dated

    first, sweeper = impatient.worker(), impatient.spawn("workers", "sweeper")
    when = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=2.5 * VISIBILITY)
    handle = started(impatient, "dated", Dated(workflow_id="dated", when=when))
    until(lambda: handle.snapshot().status is WorkflowStatus.SUSPENDED, first.output)
    assert impatient.unacknowledged() == 0

    second = impatient.worker()
    until(lambda: handle.snapshot().status is WorkflowStatus.COMPLETED, lambda: first.output() + second.output())
    assert dt.datetime.now(dt.UTC) >= when
    over = time.monotonic() + 1.5 * VISIBILITY
    until(lambda: time.monotonic() > over)

    assert mailbox.subjects == ["dated"]
    assert pushed(impatient, "field:taken", "dated") == 2, sweeper.output()  # its start, and its moment


def test_e1_a_second_copy_of_a_message_costs_two_reads_and_changes_nothing(
    impatient: Any, mailbox: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = impatient.client.runtime
    first, second = impatient.spawn_worker(), impatient.spawn_worker()
    handle = started(impatient, "copied", hold=True)
    until(lambda: pushed(impatient, "field:began", "copied"), first.output)
    for _ in range(5):
        runtime.hints.send(handle.name, "copied", handle.run_id)
    until(lambda: pushed(impatient, "field:taken", "copied") == 6, second.output)

    asked = Asked(runtime.store)
    monkeypatch.setitem(runtime.__dict__, "store", asked)
    run_segment(runtime, handle.name, "copied", handle.run_id)
    assert [call for call in asked.calls if call != "joined"] == ["entry", "load"]
    monkeypatch.undo()
    let_go(impatient, "copied")

    assert handle.wait(30).status is WorkflowStatus.COMPLETED
    assert handle.snapshot().execution_attempt == 1
    assert (pushed(impatient, "field:began", "copied"), mailbox.subjects) == (1, ["copied"])


# --- E2: a worker that is alive and takes no messages after its server came back ---------------------------------------------

OUTAGE = 2.5
"""Seconds: longer than the patience of a worker's probe."""
SECONDS = 20
"""Within these a worker takes messages again."""


class OneServer:
    """A worker and a sweeper that have one server for everything: broker, store and bus."""

    def __init__(self, pool: str, work: Any, server: Any) -> None:
        self.pool, self.work, self.server = pool, work, server
        work.store = server.client()
        self.worker, self.sweeper = work.spawn_worker(pool), work.spawn("workers", "sweeper")
        self.held: Any = None

    def beats(self) -> int:
        """How often the worker has beaten."""
        heard = self.work.client.runtime.signals.read(("agent.heartbeat",))
        return sum(signal.payload["agent"].startswith("worker:") for signal in heard)

    def said(self) -> str:
        return self.worker.output() + self.sweeper.output()


def test_e2_after_an_outage_and_three_drops_workers_take_messages_and_beat(
    make_work: Any, make_server: Any, until: Any
) -> None:
    meshes: list[OneServer] = []
    for pool in ("prefork", "threads"):
        server = make_server()
        quick = {"JARVIS_HEARTBEAT_EVERY": "0.3", "JARVIS_PROBE_EVERY": "0.3", "FIELD_LEASE": "30"}
        work = make_work(server.url.replace("/0", "/1"), JARVIS_REDIS_URL=server.url, JARVIS_MODULES=MODULES, **quick)
        meshes.append(OneServer(pool, work, server))
    for mesh in meshes:
        mesh.work.ready(mesh.worker)
        mesh.held = started(mesh.work, f"held-{mesh.pool}", hold=True)
        until(lambda mesh=mesh: pushed(mesh.work, "field:began", mesh.held.workflow_id) and mesh.beats(), mesh.said)

    for mesh in meshes:
        mesh.server.kill()
    back = time.monotonic() + OUTAGE
    until(lambda: time.monotonic() > back)
    for mesh in meshes:
        mesh.server.start()
    for drop in range(3):
        until(lambda drop=drop: time.monotonic() > back + drop)
        for mesh in meshes:
            mesh.server.client().client_kill_filter(_type="normal", skipme=True)

    for mesh in meshes:
        before = mesh.beats()
        fresh = started(mesh.work, "fresh")
        assert fresh.wait(SECONDS).status is WorkflowStatus.COMPLETED, mesh.said()
        until(lambda mesh=mesh, before=before: mesh.beats() > before + 2, mesh.said, SECONDS)
        let_go(mesh.work, mesh.held.workflow_id)
        assert mesh.held.wait(SECONDS).status is WorkflowStatus.COMPLETED, mesh.said()
        assert mesh.worker.popen.poll() is None


def test_e2_a_worker_that_stays_deaf_is_reported_though_its_process_is_up(make_work: Any, make_server: Any, until: Any) -> None:
    stale_after = 2
    watched = json.dumps({"agents": ["research"], "stale_after_seconds": stale_after})
    quick = {"JARVIS_PROBE_EVERY": "0.2", "JARVIS_HEARTBEAT_EVERY": "0.2", "JARVIS_WATCHDOG": watched}
    work = make_work(make_server().url, JARVIS_MODULES=MODULES, JARVIS_ROLES="research", **quick)
    worker = work.worker("threads")
    runtime = work.client.runtime
    beats = heartbeat_consumer(runtime)
    sweeps: list[dt.datetime] = []

    def swept() -> list[str]:
        """Sweep, and say who has stopped."""
        beats.drain()
        sweeps.append(dt.datetime.now(dt.UTC))
        found = sweep_watchdog(runtime, f"watchdog-{secrets.token_hex(4)}", sweeps[-1])
        assert found is not None
        return list(found["stale"])

    until(lambda: swept() == [], worker.output)
    (work.folder / "deaf").touch()
    until(lambda: "this worker takes no messages" in worker.output(), worker.output)
    until(lambda: swept() == ["research"], worker.output)

    assert worker.popen.poll() is None
    *_, alert = runtime.signals.read((STALE_TOPIC,))
    assert alert.payload["agent"] == "research"
    seen, threshold = dt.datetime.fromisoformat(alert.payload["last_seen"]), dt.timedelta(seconds=stale_after)
    assert sweeps[-2] < seen + threshold <= sweeps[-1], "no sweep past the threshold let it pass"

    (work.folder / "deaf").unlink()
    work.done("heard")
    until(lambda: swept() == [], worker.output)


# --- E3: a task that kills its worker ----------------------------------------------------------------------------------------

TAKEOVERS = 1


def test_e3_a_run_that_kills_its_workers_is_parked_and_alerted_and_those_behind_it_end(
    make_work: Any, make_server: Any, mailbox: Any, until: Any
) -> None:
    more = {"JARVIS_MAX_TAKEOVERS": str(TAKEOVERS), "JARVIS_ALERTS": alerts_to(mailbox)}
    work = make_work(make_server().url, JARVIS_MODULES=MODULES, **more)
    work.store.set("field:poison:killer", 1)
    killer = started(work, "killer")
    behind = [started(work, f"behind-{number}") for number in range(3)]
    worker = work.spawn("celery", "-A", "workers", "worker", "--pool", "prefork", "--concurrency", "2")
    others = [work.spawn("workers", role) for role in ("sweeper", "consumers")]

    def said() -> str:
        return "".join(each.output() for each in (worker, *others))

    for handle in behind:
        assert handle.wait(30).status is WorkflowStatus.COMPLETED, said()
        assert handle.snapshot().execution_attempt == 1
    until(lambda: mailbox.subjects, said)
    parked = killer.snapshot()
    assert (parked.status, parked.failure.retry_at) == (WorkflowStatus.FAILED, None)
    assert str(parked.failure) == "RunStalledError: 2 workers were lost with it, without a committed step between"
    assert [entry.partition for entry in work.client.runs(status=WorkflowStatus.FAILED)] == ["killer"]
    assert pushed(work, "field:began", "killer") == TAKEOVERS + 1
    assert worker.popen.poll() is None

    (signal,) = work.client.runtime.signals.read(("workflow.stalled",))
    assert (signal.payload["workflow_id"], signal.payload["run_id"]) == ("killer", killer.run_id)
    assert mailbox.subjects == ["killer stands still"]
    killer.client.runtime.hints.send(killer.name, "killer", killer.run_id)  # nor does a message that comes late wake it
    started(work, "last").wait(30)
    assert pushed(work, "field:began", "killer") == TAKEOVERS + 1

    work.store.delete("field:poison:killer")
    assert work.client.retry("killer") is True
    until(lambda: killer.snapshot().status is WorkflowStatus.COMPLETED, said)


# --- E7: a server that is full ------------------------------------------------------------------------------------------------


def fill(client: redis.Redis) -> None:
    """Put in what a cache would, until nothing more goes in, however small."""
    numbers = itertools.count()
    with suppress(OutOfMemoryError):
        while client.set(f"cache:{next(numbers)}", b"." * 4096):
            pass
    # The buffer of one connection more or less must not make room.
    client.config_set("maxmemory", client.info("memory")["used_memory"] * 9 // 10)


def test_e7_while_the_server_is_full_the_watchdog_alerts_without_it_and_afterwards_not_again(
    make_work: Any, make_server: Any, mailbox: Any, until: Any
) -> None:
    small = make_server("--maxmemory", "4mb", "--maxmemory-policy", "noeviction")
    work = make_work(make_server().url, JARVIS_REDIS_URL=small.url, JARVIS_ALERTS=alerts_to(mailbox))
    runtime, client = work.client.runtime, small.client()
    consumers = work.spawn("workers", "consumers")

    def sweep(*agents: str) -> tuple[int, str]:
        """Have a process of its own sweep, as cron would; return its exit code and what it said."""
        swept = work.spawn("console.main", "watchdog", "sweep", JARVIS_WATCHDOG=json.dumps({"agents": agents}))
        return swept.popen.wait(30), swept.output()

    def delivered(*alerted: str) -> bool:
        """Whether these alerts, and no other, are on the bus, and were seen to."""
        ids = [signal.payload["agent"] for signal in runtime.signals.read((STALE_TOPIC,))]
        (group,) = [group for group in runtime.signals.groups() if group.name == "alerts"] or [None]
        return ids == [*alerted] and group is not None and (group.unread, group.pending, group.retrying) == (0, 0, 0)

    assert sweep("bakery")[0] == 0
    until(lambda: delivered("bakery") and mailbox.subjects == ["bakery has stopped"], consumers.output)
    runtime.heartbeats.beat("mill", dt.datetime.now(dt.UTC) - dt.timedelta(hours=1))
    Outcry(runtime).look()  # the last time that the sweeper finds that the server takes writes

    fill(client)
    code, said = sweep("bakery", "mill")
    assert (code, "out of memory" in said) == (1, True), said
    assert mailbox.subjects == ["bakery has stopped", "The server takes no writes", "mill has stopped"]
    sweeper = work.spawn("workers", "sweeper", JARVIS_WATCHDOG=json.dumps({"agents": ["bakery", "mill"]}))
    until(lambda: "the server takes no writes" in sweeper.output(), sweeper.output)
    assert sweep("bakery", "mill")[0] == 1

    client.delete(*client.keys("cache:*"))
    assert sweep("bakery", "mill")[0] == 0
    until(lambda: delivered("bakery", "mill"), consumers.output)
    assert mailbox.subjects == ["bakery has stopped", "The server takes no writes", "mill has stopped"]
    assert (consumers.popen.poll(), sweeper.popen.poll()) == (None, None)


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise looks through its senders in this process
def test_e7_of_a_server_that_is_away_people_are_told_without_it(make_work: Any, make_server: Any, mailbox: Any) -> None:
    server = make_server()
    more = {"JARVIS_WATCHDOG": json.dumps({"agents": [], "stale_after_seconds": 1}), "JARVIS_ALERTS": alerts_to(mailbox)}
    work = make_work(make_server().url, JARVIS_REDIS_URL=server.url, **more)
    outcry = Outcry(work.client.runtime)
    outcry.look_patiently()

    server.kill()
    outcry.look_patiently()  # it tries for longer than an agent may be silent here

    assert mailbox.subjects == ["The server does not answer"]
