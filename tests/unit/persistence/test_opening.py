"""A store is opened by its URL; a wrong URL is told in words that hold no secret."""

import pytest

from persistence import InMemoryPersistence, PersistenceError, RedisPersistence, open_persistence

WRONG = {
    "": "scheme .*: use one of memory://, redis://, rediss://, unix://",
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
        "unix:///run/redis.sock?db=2",
        "unix://user:pw@/run/redis.sock",
    ],
)
def test_a_redis_url_opens_a_store_without_connecting(url):
    assert isinstance(open_persistence(url), RedisPersistence)


def test_memory_is_a_new_store_each_time():
    one, other = open_persistence("memory://"), open_persistence("memory://")
    assert isinstance(one, InMemoryPersistence)
    one.initialize_if_absent("p", "f", b"1")
    assert other.load("p") == {}
