"""A store is opened by its URL; a wrong URL is told in words that hold no secret."""

import pytest

from persistence import FilePersistence, InMemoryPersistence, PersistenceError, RedisPersistence, open_persistence

WRONG = {
    "": "scheme .*: use one of memory://, file://, redis://, rediss://, unix://",
    "localhost": "scheme .*none",
    "postgres://user:secret@host/db": "scheme 'postgres'",
    "redis://user:secret@host:many/0": "port",
    "redis://user:secret@host:70000/0": "port",
    "redis://:sec/ret@host:6379/0": "port .*percent-encode",
    "redis://:12/secret@host/0": "database",
    "redis://user:secret@[::1/0": "host",
    "redis://user:secret@host/name": "database",
    "redis://user:secret@host/1/2": "database",
    "redis://user:secret@host/-1": "database",
    "redis://user:secret@host/0?db=first": "'db'",
    "redis://user:secret@host/0?socket_timeout=soon": "'socket_timeout'",
    "redis://user:secret@host/0?colour=blue": "option in its query .*colour",
    "redis://user:secret@host/0?protocol=9": "option in its query .*protocol",
    "rediss://user:secret@host/0?ssl_cert_reqs=maybe": "option in its query",
    "file:relative/path": "slashes behind its scheme",
    "file://relative/path": "host 'relative' .*slash is missing",
    "file://user:secret@host/path": "host 'host' is not this machine",
    "file://[::1/secret": "host is malformed",
    "file://": "path '' is not a directory",
    "file:///": "path '/' is not a directory",
    "file:///a%00b": "not a directory",
    "file:///runs?mode=rw": "options behind its path .*percent-encode",
    "file:///runs#1": "options behind its path",
    "redis+sentinel://user:secret@host:26379": "names no service",
    "redis+sentinel://user:secret@host:many,other/mesh": "port",
    "redis+sentinel://user:secret@host,,other/mesh": "comma too many",
    "redis+sentinel://user:secret@/mesh": "names no host",
    "redis+sentinel://user:secret@host/mesh/first": "database",
    "redis+sentinel://user:secret@host/mesh?colour=blue": "option in its query .*colour",
    "redis+cluster://user:secret@host:6379,other:70000": "port",
    "redis+cluster://user:secret@host,": "comma too many",
    "redis+cluster://user:secret@host/1": "database is not 0",
    "redis+cluster://user:secret@host?db=1": "database is not 0",
    "redis+cluster://user:secret@host?socket_timeout=soon": "'socket_timeout'",
    "rediss+cluster://user:secret@host?ssl_cert_reqs=maybe": "option in its query",
    "unix+cluster://user:secret@host": "scheme 'unix.cluster'",
    "unix://": "path to a socket",
    "unix:///run/redis.sock?db=first": "database",
}


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_url_is_refused_by_the_part_that_is_wrong(url):
    with pytest.raises(PersistenceError, match=WRONG[url]) as caught:
        open_persistence(url)
    assert "sec" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis://host",
        "redis://user:p%2Fw@host:6380/3?socket_timeout=2&client_name=jarvis",
        "redis://[::1]:6379/0",
        "rediss://host/0?ssl_cert_reqs=required",
        "redis+sentinel://user:p%2Fw@one,two:26380/mesh/2?sentinel_username=s&sentinel_password=t&socket_timeout=2",
        "rediss+sentinel://one/mesh?ssl_cert_reqs=required",
        "redis+cluster://user:p%2Cw@one:6380,[::1],two/?client_name=jarvis",
        "rediss+cluster://one/0?db=0&ssl_ca_certs=/etc/ours.pem",
        "unix:///run/redis.sock?db=2",
        "unix://user:pw@/run/redis.sock",
    ],
)
def test_a_redis_url_opens_a_store_without_connecting(url):
    assert isinstance(open_persistence(url), RedisPersistence)


@pytest.mark.parametrize("url", ["file://{}/a%20b%3F", "file://localhost{}/a%20b%3F"])
def test_a_file_url_opens_a_store_in_that_directory(tmp_path, url):
    store = open_persistence(url.format(tmp_path))
    assert isinstance(store, FilePersistence)
    assert list(tmp_path.iterdir()) == []
    store.initialize_if_absent("p", "f", b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["a b?"]


def test_memory_is_a_new_store_each_time():
    one, other = open_persistence("memory://"), open_persistence("memory://")
    assert isinstance(one, InMemoryPersistence)
    one.initialize_if_absent("p", "f", b"1")
    assert other.load("p") == {}
