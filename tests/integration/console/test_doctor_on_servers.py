"""What `jarvis doctor` sees on real servers; it changes nothing, and goes on where it may not look."""

import datetime as dt
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from bus import SignalConsumer
from console.health.examining import examine
from console.health.findings import Finding, State, judge_server
from console.health.servers import read_servers
from persistence import PersistenceError, UnreachableError
from persistence.redis import RedisLink, connect
from workers import MeshClient, Settings, register
from workers.broker.hints import publish
from workers.schedules.catalogue import scheduled
from workers.schedules.looking import ScheduleLook
from workers.segments import run_segment
from workers.signals.deliveries import DeliveryLedger
from workflow import Event, StopEvent, Workflow, WorkflowState

ROOT = Path(__file__).parents[3]
MESH_USER = re.findall(r"^ACL SETUSER (.*)", (ROOT / "docs" / "reference" / "redis.md").read_text(), re.MULTILINE)[1].split()
RABBITMQ_URL = os.environ.get("JARVIS_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672//")

pytestmark = pytest.mark.server


def examined(url: str) -> list[Finding]:
    link = RedisLink(connect(url), error=PersistenceError, unreachable=UnreachableError)
    return [finding for facts in read_servers(link) for finding in judge_server(facts)]


def by_check(url: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in examined(url)}


def with_user(url: str, name: str, *rights: str) -> str:
    with redis.Redis.from_url(url) as client:
        client.execute_command("ACL", "SETUSER", name, "reset", *rights)
    return url.replace("unix://", f"unix://{name}:password@")


def test_a_private_server_is_sound(server_url):
    assert [finding.check for finding in examined(server_url) if finding.state is not State.OK] == []


def test_it_leaves_data_configuration_and_users_as_they_were(server_url):
    with redis.Redis.from_url(server_url) as client:
        client.set("kept", "1")
        before = (client.config_get("*"), client.acl_list(), client.info("persistence")["aof_current_size"])
        examined(server_url)
        assert (client.config_get("*"), client.acl_list(), client.info("persistence")["aof_current_size"]) == before
        assert client.keys("*") == [b"kept"]


def test_every_command_that_it_sends_is_one_that_reads(server_url):
    sent: list[str] = []
    with redis.Redis.from_url(server_url) as client, redis.Redis.from_url(server_url) as other, other.monitor() as monitor:
        examined(server_url)
        client.echo("done")
        while not (line := monitor.next_command()["command"]).startswith("ECHO"):
            sent.append(line)
    names = {line.split()[0].upper() for line in sent}
    assert names <= {"HELLO", "CLIENT", "PING", "SELECT", "TIME", "INFO", "CONFIG", "EVAL"}
    assert [line for line in sent if "redis.call" in line] == []


def test_of_what_no_monitor_shows_it_only_reads_the_configuration(server_url):
    with redis.Redis.from_url(server_url) as client:
        client.config_resetstat()
        examined(server_url)
        counted = {name for name in client.info("commandstats") if "config" in name or "acl" in name}
    assert counted == {"cmdstat_config|resetstat", "cmdstat_config|get"}


def test_the_user_of_a_mesh_has_all_rights_and_is_told_what_it_cannot_see(server_url):
    found = by_check(with_user(server_url, "mesh", *MESH_USER[1:]))
    assert found["rights"].state is State.OK
    assert {check for check, finding in found.items() if finding.state is State.NOTE} == {"settings"}
    assert State.WRONG not in {finding.state for finding in found.values()}


def test_a_right_that_is_missing_is_named_with_where(server_url):
    found = by_check(with_user(server_url, "almost", *MESH_USER[1:], "-hlen", "-xgroup|create", "+info", "+config|get"))
    assert found["rights"].state is State.WRONG
    missing = found["rights"].fact
    assert "hlen on jarvis:workflow:{0}:p:" in missing
    assert "xgroup|create on {jarvis:signals}:facts" in missing
    assert "hget" not in missing


def test_a_user_with_no_right_at_all_is_told_so_and_nothing_fails(server_url):
    found = by_check(with_user(server_url, "nobody", "on", ">password", "-@all"))
    assert found["scripts"].state is State.WRONG
    assert {check for check, finding in found.items() if finding.state is State.NOTE} == {"settings", "clocks", "rights"}


def test_every_node_of_a_cluster_is_seen(cluster):
    findings = examined(cluster.url)
    assert sorted(finding.fact.rpartition(" ")[2] for finding in findings if finding.check == "server") == sorted(
        node.address for node in cluster.nodes
    )
    assert {finding.state for finding in findings} == {State.OK}


def test_the_replica_of_a_watched_primary_is_seen(sentinels):
    found = by_check(sentinels.url)
    assert found["replicas"] == Finding(
        "replicas", State.NOTE, "1 in step", "a failover loses what they have not yet: those steps run again"
    )


def test_what_endangers_runs_is_seen(own_sentinels):
    primary = own_sentinels.primary
    url = f"redis://{primary.address}"
    primary.asks("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru", "appendonly", "no")
    found = by_check(url)
    assert {check for check, finding in found.items() if finding.state is State.WRONG} == {"memory", "append-only file"}
    replica = by_check(f"redis://{own_sentinels.replica.address}")
    assert replica["server"].state is State.WRONG
    assert "read-only replica" in replica["server"].meaning


def test_a_server_that_does_not_answer_is_an_error():
    with pytest.raises(UnreachableError):
        examined("redis://127.0.0.1:1")


# --- a whole mesh -----------------------------------------------------------------------------------------------------------


def settings_of(url: str, **more: object) -> Settings:
    return Settings.load(redis_url=url, **more)


def checks(settings: Settings, now: dt.datetime | None = None) -> dict[str, Finding]:
    """The findings of all that there is to see; of several by one name the worst."""
    order = [State.OK, State.NOTE, State.WRONG]
    found = sorted(examine(settings, now), key=lambda finding: order.index(finding.state))
    return {finding.check: finding for finding in found}


class Asked(Event):
    """Begin."""


def fails(event: Asked, state: WorkflowState) -> StopEvent:
    raise ValueError("it fails")


@pytest.fixture
def mesh(server_url: str) -> Iterator[MeshClient]:
    """A mesh of which nothing runs."""
    register("failing", lambda workflow_id: Workflow(workflow_id, nodes=[fails], start_event=Asked(), lease_timeout=30))
    client = MeshClient(settings_of(server_url))
    yield client
    client.close()


def test_a_mesh_on_which_nothing_was_done_yet_has_no_progress_to_complain_of(server_url: str) -> None:
    found = checks(settings_of(server_url))
    ok = ("broker", "queue segments", "queue sweeps", "sweeper", "schedules", "history")
    assert {check: found[check].state for check in ok} == dict.fromkeys(ok, State.OK)
    assert {found[f"group {name}"].state for name in ("alerts", "heartbeats", "subscriptions")} == {State.NOTE}


def test_messages_that_wait_and_those_set_aside_are_counted(mesh: MeshClient, server_url: str) -> None:
    for number in range(3):
        mesh.start("failing", f"run:{number}")
    publish(mesh.runtime.celery, "x", "segments", [])
    with mesh.runtime.celery.connection_for_write() as connection:
        connection.SimpleQueue("segments.malformed").put("?")

    found = [finding for finding in examine(settings_of(server_url)) if finding.check == "queue segments"]

    assert [finding.fact for finding in found] == ["4 waiting", "1 malformed messages were set aside"]


def test_a_message_that_has_waited_for_long_is_seen(mesh: MeshClient, server_url: str) -> None:
    mesh.start("failing", "run:1")
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    found = checks(settings_of(server_url), later)["queue segments"]
    assert (found.state, found.fact) == (State.NOTE, "1 waiting, the oldest for 1 h")


@pytest.mark.parametrize("sent", ["1e999", "NaN", "9" * 400, '"noon"', "[" * 5000])
def test_a_malformed_message_at_the_head_of_a_queue_is_counted_only(mesh: MeshClient, server_url: str, sent: str) -> None:
    with mesh.runtime.celery.connection_for_write() as connection:
        redis = connection.default_channel.client
        redis.lpush("segments", f'{{"headers": {{"sent_at": {sent}}}}}')
    assert checks(settings_of(server_url))["queue segments"].fact == "1 waiting"


def test_a_message_that_does_not_say_when_it_was_sent_is_counted_only(mesh: MeshClient, server_url: str) -> None:
    with mesh.runtime.celery.connection_for_write() as connection:
        connection.SimpleQueue("segments").put("?")
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    assert checks(settings_of(server_url), later)["queue segments"].fact == "1 waiting"


def test_history_and_signals_and_runs_that_nobody_sees_to_are_seen(mesh: MeshClient, server_url: str) -> None:
    handle = mesh.start("failing", "run:1")
    run_segment(mesh.runtime, "failing", "run:1", handle.run_id)
    mesh.start("failing", "run:2")
    signals = mesh.runtime.signals
    SignalConsumer(signals, "alerts", lambda _: None).drain()
    signals.publish("fact:1", "agent.heartbeat.stale", {"agent": "bakery"})

    found = checks(settings_of(server_url), dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))

    late = ("sweeper", "history", "group alerts")
    assert {check: found[check].state for check in late} == dict.fromkeys(late, State.WRONG)
    assert "1 unread, the oldest for 1 h" in found["group alerts"].fact


def test_a_schedule_that_nobody_looks_at_any_more_is_seen(mesh: MeshClient, server_url: str) -> None:
    looked = dt.datetime.now(dt.UTC) - dt.timedelta(days=2)
    ScheduleLook(mesh, scheduled(mesh.runtime.settings), now=lambda: looked).look()

    silent = [finding for finding in examine(settings_of(server_url)) if finding.check == "schedules"]

    assert {finding.fact.partition(":")[0]: finding.state for finding in silent} == {
        "daily-briefing": State.WRONG,
        "watchdog": State.NOTE,
    }


def test_an_alert_in_doubt_is_named(mesh: MeshClient, server_url: str) -> None:
    for _ in range(2):  # the second one finds that the first has begun and not ended
        DeliveryLedger(mesh.runtime.deliveries).begin("watchdog/bakery", "route")

    assert checks(settings_of(server_url))["alerts"].fact == "nobody knows whether 1 arrived: watchdog/bakery"


def test_to_look_at_a_mesh_changes_nothing(mesh: MeshClient, server_url: str) -> None:
    handle = mesh.start("failing", "run:1")
    run_segment(mesh.runtime, "failing", "run:1", handle.run_id)
    SignalConsumer(mesh.runtime.signals, "alerts", lambda _: None).drain()
    mesh.runtime.signals.publish("fact:1", "agent.heartbeat.stale", {"agent": "bakery"})

    def everything() -> dict[tuple[int, bytes], bytes | None]:
        kept: dict[tuple[int, bytes], bytes | None] = {}
        for number in (0, 1):
            with redis.Redis.from_url(server_url, db=number) as client:
                kept |= {(number, key): client.dump(key) for key in client.scan_iter()}
        return kept

    before = everything()
    list(examine(settings_of(server_url)))

    assert everything() == before


@pytest.mark.parametrize("url", ["redis://:hunter2@127.0.0.1:1/0", "amqp://mara:hunter2@127.0.0.1:1//", "nonsense://x"])
def test_a_broker_that_cannot_be_had_is_named_without_its_password(server_url: str, url: str) -> None:
    found = checks(settings_of(server_url, broker_url=url))["broker"]

    assert found.state is State.WRONG
    assert "hunter2" not in found.fact
    assert "JARVIS_BROKER_URL" in found.meaning


def test_rabbitmq_is_looked_at_too(server_url: str) -> None:
    found = checks(settings_of(server_url, broker_url=RABBITMQ_URL))

    assert found["broker"].state is State.OK
    assert {"queue segments", "queue sweeps"} <= found.keys()


def test_a_broker_that_says_nothing_is_given_up_soon(server_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port, began = silent.getsockname()[1], time.monotonic()
        for scheme in ("redis", "amqp"):
            assert checks(settings_of(server_url, broker_url=f"{scheme}://127.0.0.1:{port}/0"))["broker"].state is State.WRONG

    assert time.monotonic() - began < 30
