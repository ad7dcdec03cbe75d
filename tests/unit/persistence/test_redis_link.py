"""The link repeats what is safe, a bounded number of times, and speaks bytes whatever client it is given."""

import gc
from collections.abc import Callable

import fakeredis
import pytest
import redis
import redis.asyncio
from redis.backoff import ConstantBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    SlotNotCoveredError,
    TryAgainError,
)
from redis.retry import Retry

from persistence import IndexEntry, PersistenceError, RedisPersistence, UnreachableError
from persistence.redis import RedisLink, connect

DELAYS = (0.5, 1.0, 2.0)


class Scripted:
    """A command that fails in the given ways, one a try, and then answers."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.tries = 0

    def __call__(self, client: redis.Redis) -> str:
        self.tries += 1
        if self.troubles:
            raise self.troubles.pop(0)
        return "answer"


@pytest.fixture
def slept() -> list[float]:
    """Return the pauses that the link made."""
    return []


@pytest.fixture
def link(slept: list[float]) -> RedisLink:
    """Return a link that does not really sleep."""
    client = redis.Redis(host="nowhere", port=1)
    return RedisLink(client, error=PersistenceError, unreachable=UnreachableError, retry_delays=DELAYS, sleep=slept.append)


def test_an_answer_at_once_is_certain(link, slept):
    assert link.repeat(Scripted()) == ("answer", False)
    assert slept == []


@pytest.mark.parametrize(
    "trouble", [redis.ConnectionError("gone"), redis.TimeoutError("late"), ConnectionResetError("reset"), OSError("broken")]
)
def test_after_trouble_on_the_line_an_answer_is_uncertain(link, trouble):
    assert link.repeat(Scripted(trouble)) == ("answer", True)


def test_a_server_that_still_loads_cannot_have_done_anything(link):
    loading = BusyLoadingError("LOADING")
    assert link.repeat(Scripted(loading, loading)) == ("answer", False)
    assert link.repeat(Scripted(redis.ConnectionError("gone"), loading)) == ("answer", True)


NOT_YET = [
    *(ReadOnlyError("no"), MasterDownError("no"), ClusterDownError("no"), TryAgainError("no"), SlotNotCoveredError("no")),
    *(ClusterError("TTL exhausted."), ResponseError("BUSY Redis is busy running a script")),
]


@pytest.mark.parametrize("trouble", NOT_YET, ids=repr)
def test_a_server_that_cannot_write_yet_is_asked_again_and_has_done_nothing(link, trouble):
    assert link.repeat(Scripted(trouble, trouble)) == ("answer", False)
    with pytest.raises(PersistenceError) as caught:
        link.repeat(Scripted(*[trouble] * 10))
    assert not isinstance(caught.value, UnreachableError)


def caused(cause: Exception) -> Exception:
    """What the client of a cluster makes of trouble with every node."""
    trouble = RedisClusterException("Redis Cluster cannot be connected. Please provide at least one reachable node")
    trouble.__cause__ = cause
    return trouble


def test_a_cluster_that_is_looked_for_after_trouble_leaves_the_outcome_uncertain(link):
    assert link.repeat(Scripted(caused(redis.ConnectionError("gone")))) == ("answer", True)
    with pytest.raises(UnreachableError, match=r"no answer .*: start it"):
        link.repeat(Scripted(*[caused(redis.ConnectionError("gone"))] * 10))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (AuthenticationError("no"), "refused these credentials"),
        (NoPermissionError("no"), "lacks a right"),
        (RedisClusterException("Cluster mode is not enabled on this node"), "redis:// for a single server"),
    ],
)
def test_what_a_cluster_refuses_is_told_as_it_was_and_not_repeated(link, cause, words):
    command = Scripted(caused(cause))
    with pytest.raises(PersistenceError, match=words) as caught:
        link.repeat(command)
    assert command.tries == 1
    assert not isinstance(caught.value, UnreachableError)


def test_the_words_that_the_library_puts_before_those_of_the_server_are_left_out(link):
    wrong_type = ResponseError("Command # 1 (HGET key field) of pipeline caused error: WRONGTYPE Operation against a key")
    with pytest.raises(PersistenceError, match=r"another program is in the way \(WRONGTYPE Operation"):
        link.repeat(Scripted(wrong_type))


def test_tries_are_bounded_and_pauses_grow_with_jitter(link, slept):
    command = Scripted(*[redis.ConnectionError("gone")] * 10)
    with pytest.raises(UnreachableError, match="no answer from the Redis server at nowhere:1"):
        link.repeat(command)
    assert command.tries == len(DELAYS) + 1
    assert [delay / 2 <= pause <= delay for pause, delay in zip(slept, DELAYS, strict=True)] == [True] * len(DELAYS)


@pytest.mark.parametrize("trouble", [AuthenticationError("no"), OutOfMemoryError("no"), ResponseError("no")])
def test_a_refusal_is_not_repeated(link, trouble):
    command = Scripted(trouble)
    with pytest.raises(PersistenceError) as caught:
        link.repeat(command)
    assert command.tries == 1
    assert not isinstance(caught.value, UnreachableError)


REFUSALS = [
    (OutOfMemoryError("OOM command not allowed"), "out of memory"),
    (NoPermissionError("no"), "lacks a right"),
    (ResponseError("WRONGTYPE no"), "another program"),
    (ResponseError("no"), "refused the command: no"),
]


@pytest.mark.parametrize(("refusal", "words"), REFUSALS, ids=repr)
def test_a_refusal_after_a_lost_reply_leaves_the_outcome_unknown(link, refusal, words):
    command = Scripted(redis.ConnectionError("reply lost"), refusal)
    with pytest.raises(UnreachableError, match=rf"{words}.*; an earlier reply was lost: whether .* is unknown$") as caught:
        link.repeat(command)
    assert command.tries == 2
    assert "nothing was written" not in str(caught.value)


@pytest.mark.parametrize("trouble", NOT_YET, ids=repr)
def test_a_server_that_cannot_write_any_more_after_a_lost_reply_leaves_the_outcome_unknown(link, trouble):
    with pytest.raises(UnreachableError, match="whether the call took effect is unknown"):
        link.repeat(Scripted(redis.TimeoutError("late"), *[trouble] * 10))


def test_run_tries_once(link):
    command = Scripted(redis.ConnectionError("gone"))
    with pytest.raises(UnreachableError):
        link.run(command)
    assert command.tries == 1


def test_without_an_error_for_unreachable_the_rooms_own_is_raised():
    link = RedisLink(redis.Redis(port=1), error=LookupError, retry_delays=())
    with pytest.raises(LookupError, match="no answer"):
        link.repeat(Scripted(redis.ConnectionError("gone")))


def test_the_address_holds_no_credentials():
    def address(url: str) -> str:
        return RedisLink(connect(url), error=PersistenceError).address

    assert address("redis://user:secret@host:6380/2") == "host:6380"
    assert address("rediss://user:secret@host") == "host:6379"
    assert address("unix://user:secret@/run/redis.sock") == "/run/redis.sock"


def test_what_people_read_of_sentinels_and_clusters_holds_no_credentials():
    def words(url: str) -> str:
        link = RedisLink(connect(url), error=PersistenceError, retry_delays=())
        with pytest.raises(PersistenceError) as caught:
            link.repeat(Scripted(redis.ConnectionError("gone")))
        return str(caught.value)

    sentinel = words("redis+sentinel://user:secret@one,two:1/mesh?sentinel_password=hidden")
    assert sentinel.startswith("no answer from the Redis primary 'mesh' by the Sentinels at one:26379,two:1: start it")
    assert "secret" not in sentinel
    assert "hidden" not in sentinel
    assert "secret" not in repr(connect("redis+cluster://user:secret@one"))


def test_the_options_of_a_url_reach_the_servers_and_the_sentinels():
    url = "rediss+sentinel://user:pw@one/mesh/3?sentinel_username=s&socket_timeout=2&ssl_check_hostname=false"
    pool = RedisLink(connect(url), error=PersistenceError).client.connection_pool
    options = pool.connection_kwargs
    assert (options["username"], options["password"], options["db"], options["socket_timeout"]) == ("user", "pw", 3, 2)
    assert issubclass(pool.connection_class, redis.SSLConnection)
    (asked,) = pool.sentinel_manager.sentinels
    assert issubclass(asked.connection_pool.connection_class, redis.SSLConnection)
    assert asked.connection_pool.connection_kwargs["username"] == "s"
    assert asked.connection_pool.make_connection().retry.get_retries() == 0
    cluster = connect("rediss+cluster://user:pw@one,two:1?ssl_ca_certs=ca.pem")
    assert cluster.nodes == (("one", 6379), ("two", 1))
    assert (cluster.options["ssl"], cluster.options["ssl_ca_certs"], cluster.options["username"]) == (True, "ca.pem", "user")


NOT_CLIENTS: dict[str, Callable[[], object]] = {
    "pipeline": lambda: fakeredis.FakeRedis().pipeline(),
    "asyncio client": lambda: redis.asyncio.Redis(),
    "url": lambda: "redis://localhost",
}


@pytest.mark.parametrize("kind", NOT_CLIENTS)
def test_what_is_no_client_is_refused_before_anything_is_sent(kind):
    with pytest.raises(PersistenceError, match=r"hand in a redis\.Redis client"):
        RedisPersistence(NOT_CLIENTS[kind]())  # pyright: ignore[reportArgumentType]


OPTIONS: dict[str, dict[str, object]] = {
    "decoding": {"decode_responses": True},
    "another encoding": {"encoding": "utf-16", "decode_responses": True},
    "newer protocol": {"protocol": 3},
    "newer replies": {"legacy_responses": False},
    "retries": {"retry": Retry(ConstantBackoff(1), 5), "retry_on_error": [redis.ConnectionError]},
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_options_of_a_client_do_not_change_the_bytes(kind):
    store = RedisPersistence(fakeredis.FakeRedis(server=fakeredis.FakeServer(), **OPTIONS[kind]))
    entry = IndexEntry("caf\u00e9", 1.5, "n\u00e4me", "status", "tag")
    records = {"": b"", "\u00e9": b"\x00\xff"}
    assert store.initialize_if_absent("caf\u00e9", "f", b"\xff", records, entry, [("log", b"\xfe")])
    assert store.load("caf\u00e9") == {"f": b"\xff", **records}
    assert store.due(2.0) == store.find(name="n\u00e4me") == [entry]
    assert [told.data for told in store.read_log("log")] == [b"\xfe"]


@pytest.mark.parametrize("kind", OPTIONS)
def test_no_client_brings_retries_of_its_own(kind):
    link = RedisLink(redis.Redis(**OPTIONS[kind]), error=PersistenceError)
    connection = link.client.connection_pool.make_connection()
    assert connection.retry.get_retries() == 0
    assert connection.encoder.decode_responses is False


def test_a_blocking_pool_is_given_our_options_too():
    pool = redis.BlockingConnectionPool(host="nowhere", decode_responses=True, max_connections=2)
    link = RedisLink(redis.Redis(connection_pool=pool), error=PersistenceError)
    assert link.address == "nowhere:6379"
    assert link.client.connection_pool.make_connection().encoder.decode_responses is False


def test_the_callers_client_stays_as_it_was():
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)
    RedisPersistence(client).initialize_if_absent("p", "f", b"1")
    assert {type(key) for key in client.keys("*")} == {str}


def test_a_link_that_is_dropped_closes_its_connections():
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    link = RedisLink(client, error=PersistenceError)
    link.run(lambda ours: ours.ping())
    pool = link.client.connection_pool
    assert [connection.is_connected for connection in pool._get_free_connections()] == [True]
    del link
    gc.collect()
    assert [connection.is_connected for connection in pool._get_free_connections()] == [False]
