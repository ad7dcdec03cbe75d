"""Trouble with a server is an error that says what to do; a restart in the middle is ridden out."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
import redis

from persistence import IndexEntry, PersistenceError, RedisPersistence, UnreachableError
from persistence.redis import connect

pytestmark = pytest.mark.server

AT_ONCE = ()
"""No second try."""
PATIENT = (0.05,) * 400
"""Tries for twenty seconds."""

ENTRY = IndexEntry("p", 1.0, "name", "status", "tag")
APPEND = [("log", b"told")]


@pytest.fixture
def store(server) -> RedisPersistence:
    """Return a store with one partition."""
    store = RedisPersistence(connect(server.url), retry_delays=AT_ONCE)
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY)
    return store


def change(store: RedisPersistence) -> bool:
    """A write of everything at once."""
    return store.write_if_unchanged("p", "f", b"1", {"f": b"2", "b": b"2"}, ["a"], IndexEntry("p", 2.0), APPEND)


def assert_unchanged(store: RedisPersistence) -> None:
    assert store.load("p") == {"f": b"1", "a": b"1"}
    assert store.find() == [ENTRY]
    assert store.read_log("log") == []


def poll(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def as_user(server, name: str, *rights: str) -> RedisPersistence:
    """A store whose user has these rights."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", name, "on", ">pw", *rights)
    return RedisPersistence(redis.Redis.from_url(server.url, username=name, password="pw"), retry_delays=AT_ONCE)


def test_a_missing_password_is_an_error_that_names_the_url(server, store):
    with server.client() as client:
        client.config_set("requirepass", "secret")
    with pytest.raises(PersistenceError, match=r"refused these credentials .*: correct user and password in the URL"):
        RedisPersistence(connect(server.url), retry_delays=PATIENT).load("p")


def test_a_wrong_password_is_an_error_that_does_not_repeat_it(server, store):
    as_user(server, "user", "~*", "+@all")
    wrong = redis.Redis.from_url(server.url, username="user", password="guess")
    with pytest.raises(PersistenceError, match="refused these credentials") as caught:
        RedisPersistence(wrong, retry_delays=PATIENT).load("p")
    assert "guess" not in str(caught.value)


def test_a_missing_right_is_an_error_that_names_it(server, store):
    with pytest.raises(PersistenceError, match=r"lacks a right .*: grant it with ACL SETUSER"):
        as_user(server, "elsewhere", "~other:*", "+@all").load("p")
    with pytest.raises(PersistenceError, match=r"lacks a right .*evalsha.*: grant it with ACL SETUSER"):
        change(as_user(server, "reader", "~*", "+@read", "+@connection"))
    assert_unchanged(store)


@pytest.mark.parametrize("right", ["zcard", "hget", "hlen", "xlen", "zrem", "zadd", "hset", "hdel", "xadd"])
def test_a_right_that_a_script_misses_is_an_error_that_names_it_and_nothing_is_written(server, store, right):
    with pytest.raises(PersistenceError, match=rf"lacks a right .*missing: {right.upper()}\b.*: grant it with ACL SETUSER"):
        change(as_user(server, "almost", "~*", "+@all", f"-{right}"))
    assert_unchanged(store)


def test_a_full_server_is_an_error_and_nothing_is_written(server, store):
    with server.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(PersistenceError, match=r"out of memory .*: raise maxmemory or free space"):
            store.initialize_if_absent("q", "f", b"1", {"a": b"1"}, IndexEntry("q", 1.0), APPEND)
        with pytest.raises(PersistenceError, match="out of memory"):
            store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, (), None, APPEND)
        client.config_set("maxmemory", "0")
    assert store.load("q") == {}
    assert_unchanged(store)


def test_a_write_that_frees_memory_first_is_still_whole_on_a_full_server(server, store):
    with server.client() as client:
        client.config_set("maxmemory", "1")
        try:
            whole = change(store)
        except PersistenceError:
            whole = False
        client.config_set("maxmemory", "0")
    assert store.load("p") == ({"f": b"2", "b": b"2"} if whole else {"f": b"1", "a": b"1"})
    assert store.find() == ([IndexEntry("p", 2.0)] if whole else [ENTRY])
    assert len(store.read_log("log")) == whole


def test_a_full_server_still_lets_a_partition_go(server, store):
    with server.client() as client:
        client.config_set("maxmemory", "1")
    assert store.delete_if_unchanged("p", "f", b"1")
    assert store.load("p") == {}


def test_a_replica_is_an_error_that_names_the_primary(server, store):
    with server.client() as client:
        client.replicaof("127.0.0.1", 1)
        with pytest.raises(PersistenceError, match=r"read-only replica .*: point the URL at the primary"):
            change(store)
        client.config_set("replica-serve-stale-data", "no")
        with pytest.raises(PersistenceError, match=r"replica without its primary .*: point the URL at the primary"):
            store.load("p")
        client.replicaof("NO", "ONE")
    assert_unchanged(store)


@pytest.mark.parametrize("patience", [AT_ONCE, (0.0, 0.0)])
def test_a_replica_never_says_that_a_condition_is_lost(server, store, patience):
    behind = RedisPersistence(connect(server.url), retry_delays=patience)
    with server.client() as client:
        client.replicaof("127.0.0.1", 1)
        for ask in (
            lambda: behind.initialize_if_absent("p", "f", b"1"),
            lambda: behind.write_if_unchanged("p", "f", b"0", {"f": b"2"}),
            lambda: behind.write_if_unchanged("p", "f", b"1", {}),
            lambda: behind.delete_if_unchanged("p", "f", b"0"),
        ):
            with pytest.raises(PersistenceError, match=r"read-only replica .*: point the URL at the primary"):
                ask()
        client.replicaof("NO", "ONE")
    assert_unchanged(store)


def test_a_server_that_becomes_the_primary_is_waited_for(server, store):
    patient = RedisPersistence(connect(server.url), retry_delays=PATIENT)
    with server.client() as client:
        client.replicaof("127.0.0.1", 1)
        promoting = threading.Timer(0.2, client.replicaof, ("NO", "ONE"))
        promoting.start()
        assert change(patient)
        promoting.join()
    assert len(store.read_log("log")) == 1


def test_a_disk_that_takes_no_snapshot_is_an_error_and_nothing_is_written(server):
    server.stop()
    (server.folder / "gone").mkdir()
    server.start("--appendonly", "no", "--save", "3600 1", "--dir", str(server.folder / "gone"))
    store = RedisPersistence(connect(server.url), retry_delays=AT_ONCE)
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY)
    (server.folder / "gone").rmdir()
    with server.client() as client:
        client.bgsave()
        poll(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
    for write in (lambda: change(store), lambda: store.write_if_unchanged("p", "f", b"0", {})):
        with pytest.raises(PersistenceError, match=r"cannot save to its disk .*: free space or repair the disk; nothing was"):
            write()
    assert_unchanged(store)


def test_a_server_busy_with_a_script_is_waited_for(server, store):
    with server.client() as client, server.client(socket_timeout=None) as other:
        client.config_set("busy-reply-threshold", 1)
        endless = threading.Thread(target=run_endless_script, args=(other,))
        endless.start()
        poll(lambda: is_busy(client))
        with pytest.raises(PersistenceError, match=r"busy with a script .*: wait, or end it with SCRIPT KILL"):
            change(store)
        ending = threading.Timer(0.2, client.script_kill)
        ending.start()
        assert change(RedisPersistence(connect(server.url), retry_delays=PATIENT))
        ending.join()
        endless.join()
    assert len(store.read_log("log")) == 1


def run_endless_script(client: redis.Redis) -> None:
    with pytest.raises(redis.ResponseError, match=r"(?i)killed"):
        client.eval("while true do end", 0)


def is_busy(client: redis.Redis) -> bool:
    try:
        client.get("any")
    except redis.ResponseError as refused:
        return str(refused).startswith("BUSY")
    return False


def test_too_few_replicas_are_an_error_and_nothing_is_written(server, store):
    with server.client() as client:
        client.config_set("min-replicas-to-write", 1)
        with pytest.raises(PersistenceError, match="too few replicas"):
            change(store)
    assert_unchanged(store)


def test_a_server_that_is_not_there_is_unreachable_at_its_address(server, store):
    server.stop()
    with pytest.raises(UnreachableError, match=f"no answer from the Redis server at {server.path}: start it"):
        store.load("p")
    remote = connect("redis://somebody:topsecret@127.0.0.1:1/0")
    with pytest.raises(UnreachableError, match=r"at 127\.0\.0\.1:1: start it or correct its URL") as caught:
        RedisPersistence(remote, retry_delays=AT_ONCE).load("p")
    assert "topsecret" not in str(caught.value)
    assert "somebody" not in str(caught.value)


def test_a_hung_server_is_unreachable_after_the_time_for_a_reply(server, store):
    hung = RedisPersistence(connect(server.url, socket_timeout=0.1), retry_delays=(0.0,))
    assert hung.get("p", "f") == b"1"
    server.process.send_signal(signal.SIGSTOP)
    with pytest.raises(UnreachableError, match="no answer"):
        hung.load("p")
    server.process.send_signal(signal.SIGCONT)
    assert hung.get("p", "f") == b"1"


def test_a_restart_in_the_middle_is_ridden_out(server):
    store = RedisPersistence(connect(server.url), retry_delays=PATIENT)
    store.initialize_if_absent("p", "f", b"0", index=ENTRY)
    for turn in range(3):
        server.stop()
        starting = threading.Thread(target=server.start)
        starting.start()
        new = {"f": b"%d" % (turn + 1)}
        assert store.write_if_unchanged("p", "f", b"%d" % turn, new, index=ENTRY, append=[("log", b"%d" % turn)])
        starting.join()
    assert store.load("p") == {"f": b"3"}
    assert store.find() == [ENTRY]
    assert [entry.data for entry in store.read_log("log")] == [b"0", b"1", b"2"]


def test_a_server_that_reads_its_data_is_waited_for(server, store):
    for place in range(100):
        store.initialize_if_absent(f"q{place}", "f", random.Random(place).randbytes(2048))
    with server.client() as client:
        client.bgrewriteaof()  # a snapshot answers while it is read; a list of commands only now and then
        poll(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0)
    server.stop()
    server.start("--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024", until_loaded=False)
    with pytest.raises(UnreachableError, match=f"at {server.path} is still loading its data: try again"):
        store.load("p")
    patient = RedisPersistence(connect(server.url), retry_delays=PATIENT)
    assert change(patient)
    assert len(patient.read_log("log")) == 1


CHILDREN = """
import os, sys
from persistence import RedisPersistence
from persistence.redis import connect

store = RedisPersistence(connect(sys.argv[1]))
store.initialize_if_absent("parent", "f", b"0")

def count(name):
    store.initialize_if_absent(name, "f", b"0")
    for turn in range(100):
        assert store.write_if_unchanged(name, "f", b"%d" % turn, {"f": b"%d" % (turn + 1), "name": name.encode()})
        assert store.get(name, "name") == name.encode()

children = []
for place in range(3):
    child = os.fork()
    if child == 0:
        count(f"child {place}")
        os._exit(0)
    children.append(child)
count("parent")
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_a_fork_shares_the_store_and_no_connection(server):
    done = subprocess.run([sys.executable, "-c", CHILDREN, server.url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    store = RedisPersistence(connect(server.url))
    assert [store.get(name, "f") for name in ("parent", "child 0", "child 1", "child 2")] == [b"100"] * 4
