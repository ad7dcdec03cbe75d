"""The private server, really started on each program of this machine: what it keeps, and who can reach it."""

import os
import signal
import stat
import time
from pathlib import Path

import kombu
import psutil
import pytest
import redis

from workers.embedded import ServerBinary, find_server, installed_binaries, start_server
from workers.embedded.notes import Notes
from workers.errors import FolderUnusableError, ServerDataError, ServerNotStartedError
from workers.processes import Supervisor

pytestmark = [pytest.mark.server, pytest.mark.processes]

INSTALLED = installed_binaries()
OLDER_AND_NEWER = [
    (older, newer)
    for older in INSTALLED
    for newer in INSTALLED
    if older.version.startswith("Redis 7.") and newer.version.startswith("Valkey 9.")
]


def test_what_was_written_is_there_after_a_restart(folder, binary):
    for expected in (1, 2, 3):
        with (
            Supervisor(folder) as supervisor,
            redis.Redis.from_url(start_server(supervisor, binary=binary).store_url) as client,
        ):
            assert client.incr("starts") == expected


def test_store_and_broker_have_a_database_each(folder, binary):
    with Supervisor(folder) as supervisor:
        address = start_server(supervisor, binary=binary)
        with redis.Redis.from_url(address.store_url) as store, kombu.Connection(address.broker_url) as broker:
            store.set("key", "of the store")
            channel = broker.default_channel
            assert channel.client.get("key") is None
            channel.client.set("key", "of the broker")
            assert store.get("key") == b"of the store"
            assert store.info("keyspace").keys() == {"db0", "db1"}


def test_it_never_loses_a_key_to_make_room(folder, binary):
    with Supervisor(folder) as supervisor, redis.Redis.from_url(start_server(supervisor, binary=binary).store_url) as client:
        config = client.config_get("maxmemory-policy", "appendonly", "appendfsync", "save")
    assert config == {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "save": ""}


def test_nobody_else_can_reach_it(folder, binary):
    with Supervisor(folder) as supervisor:
        address = start_server(supervisor, binary=binary)
        with redis.Redis.from_url(address.store_url) as client:
            pid = client.info("server")["process_id"]
        assert stat.S_IMODE(address.socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(address.socket.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "server").stat().st_mode) == 0o700
        assert psutil.Process(pid).net_connections("inet") == []
        assert len(os.fsencode(address.socket)) <= 100
    assert not address.socket.parent.exists()


def test_a_killed_server_is_started_again_at_the_same_place(folder, binary):
    with Supervisor(folder) as supervisor:
        address = start_server(supervisor, binary=binary)
        with redis.Redis.from_url(address.store_url) as client:
            client.set("told", "once")
            _wait_for_disk(client)
            os.kill(client.info("server")["process_id"], signal.SIGKILL)
            supervisor.watch(until=_within(20, lambda: _pings(client)))
            assert client.get("told") == b"once"
        found = find_server(folder)
        assert found == address


def test_a_record_cut_off_at_the_end_costs_only_itself(folder, binary):
    log = _written(folder, binary)
    log.write_bytes(log.read_bytes()[:-3])
    with Supervisor(folder) as supervisor, redis.Redis.from_url(start_server(supervisor, binary=binary).store_url) as client:
        assert client.dbsize() == 99


def test_damaged_data_is_one_line_that_says_what_to_do(folder, binary):
    log = _written(folder, binary)
    content = bytearray(log.read_bytes())
    content[200:220] = b"?" * 20
    log.write_bytes(content)
    with Supervisor(folder) as supervisor, pytest.raises(ServerDataError) as error:
        start_server(supervisor, binary=binary)
    assert str(error.value).startswith(f"The data in {folder / 'server'} is damaged (Bad file format reading")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("older", "newer"), OLDER_AND_NEWER)
def test_data_of_a_newer_server_is_refused_by_name_and_stays_whole(folder, older, newer):
    _written(folder, newer)
    with Supervisor(folder) as supervisor, pytest.raises(ServerDataError) as error:
        start_server(supervisor, binary=older)
    data = folder / "server"
    assert str(error.value) == (
        f"{older.version} cannot read the data in {data}, which {newer.version} wrote: "
        f"start with {newer.version} or later, or move {data} away to begin anew."
    )
    with Supervisor(folder) as supervisor, redis.Redis.from_url(start_server(supervisor).store_url) as client:
        assert client.dbsize() == 100


def test_a_folder_stays_with_the_program_that_wrote_it(folder, binary):
    for chosen in (binary, None):
        with Supervisor(folder) as supervisor:
            start_server(supervisor, binary=chosen)
        assert Notes.read(folder / "server" / "notes.json").writer == binary.path


def test_a_server_that_ends_at_once_is_one_line_with_its_last_word(folder, tmp_path):
    program = tmp_path / "broken-server"
    program.write_text("#!/bin/sh\necho 'no room on the disk'\nexit 1\n")
    program.chmod(0o700)
    with Supervisor(folder) as supervisor, pytest.raises(ServerNotStartedError) as error:
        start_server(supervisor, binary=ServerBinary(program, "Redis 7.9"))
    log = folder / "logs" / "server.log"
    assert str(error.value) == f"The private server (Redis 7.9) did not start: no room on the disk (all of it in {log})"


def test_a_server_that_never_answers_is_one_line(folder, tmp_path):
    program = tmp_path / "silent-server"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    hours = iter(range(0, 36000, 3600))
    with Supervisor(folder) as supervisor, pytest.raises(ServerNotStartedError, match="did not answer within 20 s"):
        start_server(supervisor, binary=ServerBinary(program, "Redis 7.9"), clock=lambda: next(hours))


def test_a_data_folder_that_is_no_folder_is_one_line(folder):
    folder.mkdir(parents=True)
    (folder / "server").touch()
    with Supervisor(folder) as supervisor, pytest.raises(FolderUnusableError) as error:
        start_server(supervisor)
    assert str(error.value).startswith(f"{folder / 'server'} cannot be used (File exists)")


def test_the_socket_folder_of_a_killed_owner_is_used_again(folder, tmp_path):
    left = tmp_path / "jarvis-left"
    left.mkdir(mode=0o700)
    (left / "s").touch()
    (folder / "server").mkdir(parents=True)
    Notes(socket=left / "s").write(folder / "server" / "notes.json")
    with Supervisor(folder) as supervisor:
        assert start_server(supervisor).socket == left / "s"
    assert not left.exists()


def _written(folder: Path, binary: ServerBinary) -> Path:
    """Write a hundred keys, stop the server and return the file that holds them."""
    with Supervisor(folder) as supervisor, redis.Redis.from_url(start_server(supervisor, binary=binary).store_url) as client:
        for number in range(100):
            client.set(f"key-{number}", number)
    (log,) = (folder / "server" / "appendonlydir").glob("*.incr.aof")
    return log


def _wait_for_disk(client: redis.Redis) -> None:
    client.bgrewriteaof()
    within = _within(20, lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0)
    while not within():
        time.sleep(0.02)


def _within(seconds, condition):
    """Return the condition, failing once it took too long."""
    deadline = time.monotonic() + seconds

    def check() -> bool:
        assert time.monotonic() < deadline, "it took too long"
        return condition()

    return check


def _pings(client: redis.Redis) -> bool:
    try:
        return client.ping()
    except redis.ConnectionError:
        return False
