"""A user with the rights that the reference lists, no more, passes the contract; each right that is taken away is named."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import redis

from persistence import IndexEntry, Persistence, PersistenceError, RedisPersistence, open_persistence
from persistence.redis import CLUSTER_RIGHTS, STORE_RIGHTS, connect
from persistence.testing import SharedPersistenceContract

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "redis.md"
LEAST = re.findall(r"^ACL SETUSER (.*)", PAGE.read_text(), re.MULTILINE)[0].split()
AT_ONCE = ()


def with_user(url: str, *more: str) -> str:
    """Make the user of the page on a server, and return the URL with its credentials."""
    with redis.Redis.from_url(url) as client:
        client.execute_command("ACL", "SETUSER", LEAST[0], "reset", *LEAST[1:], *more)
    return url.replace("unix://", "unix://jarvis:password@")


class TestLeastRights(SharedPersistenceContract):
    @pytest.fixture
    def opener(self, server_url: str) -> Callable[[], Persistence]:
        return partial(open_persistence, with_user(server_url))

    @pytest.fixture
    def store(self, opener: Callable[[], Persistence]) -> Persistence:
        return opener()


def use(store: Persistence) -> None:
    """Every method, with all that it may be given."""
    entry, told = IndexEntry("p", 1.0, "name", "status", "tag"), [("log", b"told")]
    assert store.initialize_if_absent("p", "f", b"1", {"a": b"1"}, entry, told)
    assert not store.initialize_if_absent("p", "f", b"1")
    assert store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, ["a"], IndexEntry("p", None, "other"), told)
    assert store.get("p", "f") == b"2"
    assert store.load("p") == {"f": b"2"}
    assert store.find(name="other")
    assert store.due(9.0) == []
    assert len(store.read_log("log")) == 2
    assert store.delete_if_unchanged("p", "f", b"2", told)


@pytest.mark.parametrize("right", STORE_RIGHTS)
def test_a_right_that_is_taken_away_is_named(server_url, right):
    url = with_user(server_url, f"-{right}")
    with redis.Redis.from_url(server_url) as client:
        client.script_flush()
    with pytest.raises(PersistenceError, match=rf"(?i)lacks a right .*\b{right}\b.*: grant it with ACL SETUSER"):
        use(RedisPersistence(connect(url), retry_delays=AT_ONCE))


def test_an_idle_connection_is_kept_and_a_database_chosen_with_these_rights(server_url):
    url = with_user(server_url).replace("db=0", "db=3")
    store = RedisPersistence(connect(url, health_check_interval=1e-9), retry_delays=AT_ONCE)
    use(store)


def test_in_a_cluster_the_rights_of_the_page_are_enough(cluster):
    more = [f"+{name}" for name in CLUSTER_RIGHTS]
    for node in cluster.nodes:
        node.asks("ACL", "SETUSER", LEAST[0], "reset", *LEAST[1:], *more)
    use(RedisPersistence(connect(cluster.url.replace("//", "//jarvis:password@")), retry_delays=AT_ONCE))
