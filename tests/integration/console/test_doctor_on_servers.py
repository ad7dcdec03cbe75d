"""What `jarvis doctor` sees on real servers; it changes nothing, and goes on where it may not look."""

import re
from pathlib import Path

import pytest
import redis

from console.health.findings import Finding, State, judge_server
from console.health.servers import read_servers
from persistence import PersistenceError, UnreachableError
from persistence.redis import RedisLink, connect

ROOT = Path(__file__).parents[3]
MESH_USER = re.findall(r"^ACL SETUSER (.*)", (ROOT / "docs" / "reference" / "redis.md").read_text(), re.MULTILINE)[1].split()

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
