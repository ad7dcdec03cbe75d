"""The rights of the page are enough for all that is kept in Redis; where one is missing, nothing is half done and lost."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from bus import BusError, RedisChannel, RedisLedger, RedisSignalBus
from persistence import RedisPersistence
from persistence.redis import connect
from workers.composition import ALERT_PREFIX, HISTORY_PREFIX
from workers.limits import RedisSlots
from workers.waking import RedisWakeUps

pytestmark = pytest.mark.server

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "redis.md").read_text()
MESH = re.findall(r"^ACL SETUSER (.*)", PAGE, re.MULTILINE)[1].split()
LEDGER = re.findall(r"`RedisLedger`.*?\| `(.*?)`", PAGE)[0].split()
STREAM = "{jarvis:signals}:facts"
RETRY, DEAD = f"{STREAM}:group:g:retry", f"{STREAM}:group:g:dead"


@pytest.fixture
def client(server_url: str) -> redis.Redis:
    """Return a client that may do everything."""
    return redis.Redis.from_url(server_url)


@pytest.fixture
def as_mesh(server_url: str, client: redis.Redis) -> Callable[..., redis.Redis]:
    """Return what makes a client whose user has the rights of the page, changed as given."""

    def made(*changes: str) -> redis.Redis:
        client.execute_command("ACL", "SETUSER", MESH[0], "reset", *MESH[1:], *changes)
        user = connect(server_url.replace("unix://", "unix://jarvis:password@"))
        assert isinstance(user, redis.Redis)
        return user

    return made


def taken(bus: RedisSignalBus):
    """A reader with one delivery in its hands."""
    bus.publish("a", "fact", {})
    reader = bus.join("g", "c", takeover_after=60)
    (delivery,) = reader.take(10).deliveries
    return reader, delivery


def test_the_rights_of_the_page_are_enough_for_every_family_of_keys(as_mesh) -> None:
    user = as_mesh(*LEDGER)
    bus = RedisSignalBus(user)
    reader, delivery = taken(bus)
    reader.retry(delivery, 0.0)
    (again,) = reader.take(10).deliveries
    reader.bury(again, "no")
    (letter,) = bus.dead_letters("g")
    assert bus.replay("g", [letter.signal.entry_id or ""]) == 1
    assert [one.name for one in bus.groups()] == ["g"]
    reader.leave()
    for prefix in ("jarvis:workflow:", ALERT_PREFIX, HISTORY_PREFIX):
        store = RedisPersistence(user, prefix=prefix)
        assert store.initialize_if_absent("p", "f", b"1", append=[("log", b"told")])
        assert store.delete_if_unchanged("p", "f", b"1")
    channel = RedisChannel(user, size=1)
    feed = channel.open("w", "r", 1)
    feed.send(1)
    feed.send(2)
    assert [getattr(one, "data", None) for one in channel.watch("w", timeout=0.05)] == [None, 2]
    slots = RedisSlots(user)
    assert slots.take({"limit": 1}, "one", 60) is None
    assert slots.take({"limit": 1}, "other", 60) is not None
    slots.give_back({"limit": 1}, "one")
    with RedisLedger(user).once("g", "a") as commands:
        assert commands is not None
        commands.set("jarvis:knowledge:note", "kept")
    RedisWakeUps(user).tell("w", "r")
    assert user.exists("jarvis:settled", "jarvis:knowledge:note", "jarvis:handled:g:a") == 3


@pytest.mark.parametrize("right", ["set", "expire", "xlen", "xtrim", "xinfo|groups", "xpending", "zrange"])
def test_without_a_right_nothing_is_published(client, as_mesh, right) -> None:
    with pytest.raises(BusError, match=rf"lacks a right .*nothing was written, missing: {re.escape(right)}"):
        RedisSignalBus(as_mesh(f"-{right}")).publish("a", "fact", {})
    assert not client.exists(STREAM, f"{STREAM}:id:a")


LETTING_GO = {
    "retry": ("zadd", lambda reader, delivery: reader.retry(delivery, 0.0)),
    "bury": ("xadd", lambda reader, delivery: reader.bury(delivery, "no")),
}


@pytest.mark.parametrize("how", LETTING_GO)
def test_without_a_right_a_delivery_stays_in_hand(client, as_mesh, how) -> None:
    right, let_go = LETTING_GO[how]
    reader, delivery = taken(RedisSignalBus(as_mesh()))
    as_mesh(f"-{right}")
    with pytest.raises(BusError, match=f"missing: {right}"):
        let_go(reader, delivery)
    assert client.xpending(STREAM, "g")["pending"] == 1
    as_mesh()
    let_go(reader, delivery)
    assert client.xpending(STREAM, "g")["pending"] == 0
    assert client.exists(RETRY, DEAD) == 1


@pytest.mark.parametrize("how", LETTING_GO)
def test_where_another_programs_key_is_in_the_way_a_delivery_stays_in_hand(client, how) -> None:
    _, let_go = LETTING_GO[how]
    reader, delivery = taken(RedisSignalBus(client))
    client.mset({RETRY: "theirs", DEAD: "theirs"})
    with pytest.raises(BusError, match="another program"):
        let_go(reader, delivery)
    assert client.xpending(STREAM, "g")["pending"] == 1


def test_without_a_right_what_waits_for_its_next_try_still_does(client, as_mesh) -> None:
    reader, delivery = taken(RedisSignalBus(as_mesh()))
    reader.retry(delivery, 0.0)
    as_mesh("-xclaim")
    with pytest.raises(BusError, match="missing: xclaim"):
        reader.take(10)
    assert client.zcard(RETRY) == 1
    as_mesh()
    assert [one.signal.id for one in reader.take(10).deliveries] == ["a"]


@pytest.mark.parametrize("trouble", ["right", "key"])
def test_a_dead_letter_that_cannot_be_replayed_is_kept(client, as_mesh, trouble) -> None:
    bus = RedisSignalBus(as_mesh())
    reader, delivery = taken(bus)
    reader.bury(delivery, "no")
    (letter,) = bus.dead_letters("g")
    if trouble == "right":
        as_mesh("-zadd")
    else:
        client.set(RETRY, "theirs")
    with pytest.raises(BusError, match=r"missing: zadd|another program"):
        bus.replay("g", [letter.signal.entry_id or ""])
    assert len(bus.dead_letters("g")) == 1


@pytest.mark.parametrize("right", ["expire", "hset", "xrange", "xdel"])
def test_without_a_right_no_frame_is_pushed_that_would_stay_for_ever(client, as_mesh, right) -> None:
    feed = RedisChannel(as_mesh(f"-{right}")).open("w", "r", 1)
    with pytest.raises(BusError, match=f"missing: {right}"):
        feed.send(1)
    assert not client.exists("{jarvis:channel:w}:frames")
