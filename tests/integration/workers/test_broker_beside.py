"""The broker that goes with a store is asked with the store's own credentials."""

from collections.abc import Iterator

import kombu
import pytest
import redis
from kombu.exceptions import OperationalError

from workers.settings import broker_beside

WITH_CREDENTIALS = ("unix://jarvis:p%40ss@{path}?db=2", "unix://{path}?db=2&username=jarvis&password=p%40ss")


@pytest.fixture
def path(redis_url: str, redis_client: redis.Redis) -> Iterator[str]:
    """The socket of a server that knows a user with a password, and nobody else."""
    redis_client.acl_setuser("jarvis", enabled=True, passwords=["+p@ss"], keys=["*"], channels=["*"], commands=["+@all"])
    redis_client.acl_setuser("default", enabled=True, commands=["-@all", "+acl", "+flushall", "+info", "+config"])
    yield redis_url.removeprefix("unix://").partition("?")[0]
    redis_client.acl_setuser("default", enabled=True, commands=["+@all"])
    redis_client.acl_deluser("jarvis")


@pytest.mark.parametrize("store", WITH_CREDENTIALS)
def test_a_socket_with_credentials_lends_its_next_database(path: str, store: str) -> None:
    url = store.format(path=path)
    with kombu.Connection(broker_beside(url), transport_options={"socket_timeout": 5}) as connection:
        connection.SimpleQueue("asked").put("anything")
    with redis.Redis.from_url(url.replace("db=2", "db=3")) as beside:
        assert beside.llen("asked") == 1


def test_without_them_it_is_refused(path: str) -> None:
    once = {"max_retries": 0}
    beside = kombu.Connection(broker_beside(f"unix://{path}?db=2"), transport_options=once)
    with beside as connection, pytest.raises(OperationalError):
        connection.default_channel.client.ping()
