"""Where the private server listens."""

import os
from pathlib import Path

import redis

from workers.embedded.address import ServerAddress, remove_socket_folder, socket_folder, temporary_root

ADDRESS = ServerAddress(Path("/tmp/jarvis-1a2b3c4d/s"))


def test_redis_py_reads_socket_and_database_from_the_store_url():
    connection = redis.ConnectionPool.from_url(ADDRESS.store_url).connection_kwargs
    assert (connection["path"], connection["db"]) == ("/tmp/jarvis-1a2b3c4d/s", 0)


def test_a_long_or_unusual_temporary_folder_is_not_used():
    assert temporary_root(Path("/var/tmp")) == Path("/var/tmp")
    assert temporary_root(Path("/var/folders/zz") / ("x" * 80)) == Path("/tmp")
    assert temporary_root(Path("/var/with a space")) == Path("/tmp")
    assert temporary_root(Path("/var/ümlaut")) == Path("/tmp")


def test_a_new_socket_folder_is_private_and_short():
    folder = socket_folder(None)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(os.fsencode(folder / "s")) <= 100
    remove_socket_folder(folder)
    assert not folder.exists()


def test_a_private_folder_is_used_again_and_any_other_is_not(tmp_path):
    private, public, link = tmp_path / "jarvis-a", tmp_path / "jarvis-b", tmp_path / "jarvis-c"
    private.mkdir(mode=0o700)
    public.mkdir(mode=0o755)
    link.symlink_to(private)
    assert socket_folder(private) == private
    for other in (public, link, tmp_path / "jarvis-none"):
        fresh = socket_folder(other)
        assert fresh != other
        remove_socket_folder(fresh)


def test_only_a_private_folder_is_removed(tmp_path):
    public = tmp_path / "jarvis-b"
    public.mkdir(mode=0o755)
    remove_socket_folder(public)
    remove_socket_folder(tmp_path / "jarvis-none")
    assert public.exists()
