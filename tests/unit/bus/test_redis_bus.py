"""What is particular to the bus in Redis and can be shown without a server."""

import fakeredis
import pytest
import redis
import structlog

from bus import BusError, RedisSignalBus, Signal, SignalConsumer
from bus.redis.bus import PUBLISH_BATCH
from bus.streams import FACTS, HEARTBEATS

FACTS_KEY = "{jarvis:signals}:facts"


@pytest.fixture
def client():
    return fakeredis.FakeRedis()


@pytest.fixture
def bus(client):
    return RedisSignalBus(client)


def test_every_key_has_the_hash_tag_and_stands_in_the_table(bus, client):
    def failing(_):
        raise ValueError

    bus.publish_many([Signal("a", "fact", {}), Signal("b", "agent.heartbeat", {})])
    SignalConsumer(bus, "late", failing).drain()
    SignalConsumer(bus, "dead", failing, max_deliveries=1, topics=("fact",)).drain()
    assert sorted(key.decode() for key in client.scan_iter()) == [
        "{jarvis:signals}:facts",
        "{jarvis:signals}:facts:group:dead:dead",
        "{jarvis:signals}:facts:group:late:retry",
        "{jarvis:signals}:facts:id:a",
        "{jarvis:signals}:heartbeats",
        "{jarvis:signals}:heartbeats:group:late:retry",
        "{jarvis:signals}:heartbeats:id:b",
    ]


def test_two_buses_on_one_server_are_apart(client):
    one, other = RedisSignalBus(client, "one"), RedisSignalBus(client, stream="other")
    one.publish("a", "fact", {})
    assert other.read() == []
    for name in ("", "a{b}"):
        with pytest.raises(BusError, match="name of a bus"):
            RedisSignalBus(client, name)


def test_ids_live_for_the_window_from_their_last_publication(bus, client):
    bus.publish_many([Signal("a", "fact", {}), Signal("b", "agent.heartbeat", {})])
    assert client.ttl(f"{FACTS_KEY}:id:a") == pytest.approx(FACTS.window, abs=2)
    assert client.ttl("{jarvis:signals}:heartbeats:id:b") == pytest.approx(HEARTBEATS.window, abs=2)
    client.expire(f"{FACTS_KEY}:id:a", 10)
    bus.publish("a", "fact", {})
    assert client.ttl(f"{FACTS_KEY}:id:a") == pytest.approx(FACTS.window, abs=2)


def test_facts_older_than_the_retention_go_with_the_next_publication(bus, client):
    client.xadd(FACTS_KEY, {"i": "old", "t": "fact", "p": "{}"}, id="1000-0")
    bus.publish("new", "fact", {})
    assert [signal.id for signal in bus.read()] == ["new"]


def test_a_batch_larger_than_a_trip_keeps_its_order(bus):
    ids = [str(n) for n in range(PUBLISH_BATCH * 2 + 7)]
    published = bus.publish_many([Signal(name, "fact", {}) for name in ids])
    assert [signal.id for signal in published] == ids
    assert bus.read(limit=10_000) == published


def test_a_repetition_after_the_entry_was_trimmed_keeps_its_place(bus, client):
    first = bus.publish("a", "fact", {"n": 1})
    client.xtrim(FACTS_KEY, maxlen=0, approximate=False)
    again = bus.publish("a", "fact", {"n": 2}, strict=True)
    assert (again.entry_id, again.published_at, again.payload) == (first.entry_id, first.published_at, {"n": 2})
    assert bus.read() == []


def test_other_content_under_a_known_id_is_said_at_info(bus):
    bus.publish("a", "fact", {"n": 1})
    with structlog.testing.capture_logs() as logs:
        bus.publish("a", "fact", {"n": 1})
        assert logs == []
        bus.publish("a", "fact", {"n": 2})
    assert [(entry["log_level"], entry["signal_id"]) for entry in logs] == [("info", "a")]


def test_what_was_trimmed_in_hand_is_counted_once_and_cleared(bus, client):
    bus.publish_many([Signal(str(n), "fact", {}) for n in range(4)])
    reader = bus.join("g", "dead", topics=("fact",), takeover_after=0.001)
    deliveries = reader.take(4).deliveries
    reader.retry(deliveries[0], 0)
    reader.bury(deliveries[1], "dead")
    client.xtrim(FACTS_KEY, maxlen=0, approximate=False)
    consumer = SignalConsumer(bus, "g", lambda _: None, takeover_after=0.001)
    lost = 0
    while client.xpending(FACTS_KEY, "g")["pending"]:
        assert consumer.drain() == 0
        lost = consumer.lost
    assert consumer.drain() == 0
    assert (lost, consumer.lost) == (3, 3)
    # The dead letter keeps its content, but there is no entry to deliver again.
    (letter,) = bus.dead_letters("g")
    assert bus.replay("g", [letter.signal.entry_id]) == 0
    assert bus.dead_letters("g") == [letter]


def test_an_entry_of_another_program_is_reported_and_passed_over(bus, client):
    bus.publish("a", "fact", {})
    for fields in ({"x": "y"}, {"i": "b", "t": "fact", "p": "not json"}, {"i": "c", "t": "fact", "p": "[]"}):
        client.xadd(FACTS_KEY, fields)
    bus.publish("z", "fact", {})
    seen = []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id))
    with structlog.testing.capture_logs() as logs:
        assert consumer.drain() == 2
        assert [signal.id for signal in bus.read()] == ["a", "z"]
    assert (seen, consumer.lost) == (["a", "z"], 3)
    assert sum("not a signal" in entry["event"] for entry in logs) == 6
    assert client.xpending(FACTS_KEY, "g")["pending"] == 0


def test_a_group_that_vanished_goes_on_where_it_was(bus, client):
    seen = []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), topics=("fact",))
    bus.publish("a", "fact", {})
    consumer.drain()
    client.xgroup_destroy(FACTS_KEY, "g")
    bus.publish("b", "fact", {})
    consumer.drain()
    assert seen == ["a", "b"]


def test_after_a_server_lost_its_data_everything_new_is_delivered(bus, client):
    seen = []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), topics=("fact",), start="end")
    bus.publish("a", "fact", {})
    assert consumer.drain() == 0
    client.flushall()
    bus.publish("b", "fact", {})
    consumer.drain()
    assert seen == ["b"]
    client.flushall()
    client.xadd(FACTS_KEY, {"i": "older clock", "t": "fact", "p": "{}"}, id="5-0")
    consumer.drain()
    assert seen == ["b", "older clock"]


def test_consumers_that_leave_are_forgotten_by_the_server(bus, client):
    for _ in range(3):
        SignalConsumer(bus, "g", lambda _: None, topics=("fact",)).drain()
    assert client.xinfo_groups(FACTS_KEY)[0]["consumers"] == 0


def test_a_client_that_decodes_text_or_speaks_resp3_serves_as_well():
    server = fakeredis.FakeServer()
    for number, options in enumerate(({"decode_responses": True}, {"protocol": 3})):
        bus = RedisSignalBus(fakeredis.FakeRedis(server=server, **options))
        published = bus.publish(str(number), "fact", {"x": "ü"})
        assert bus.read()[-1] == published
        assert SignalConsumer(bus, f"g{number}", lambda _: None).drain() == number + 1
        assert bus.groups()[number].name == f"g{number}"


def test_a_group_that_goes_while_it_is_looked_at_is_left_out(bus, client, monkeypatch):
    bus.publish("a", "fact", {})
    for group in ("goes", "stays"):
        bus.join(group, "c", topics=("fact",), takeover_after=60).take(1)
    asked = bus._group_names

    def asked_just_before(keys):
        infos = asked(keys)
        client.xgroup_destroy(FACTS_KEY, "goes")
        return infos

    monkeypatch.setattr(bus, "_group_names", asked_just_before)
    assert [group.name for group in bus.groups()] == ["stays"]


def test_one_publication_is_one_trip_and_a_batch_is_one_for_each_stream():
    sent = []

    class Counted(fakeredis.FakeRedisConnection):
        def send_packed_command(self, command, check_health=True):
            sent.append(command)
            super().send_packed_command(command, check_health)

    pool = redis.ConnectionPool(connection_class=Counted, server=fakeredis.FakeServer())
    bus = RedisSignalBus(fakeredis.FakeRedis(connection_pool=pool))
    bus.publish("warm", "fact", {})
    sent.clear()
    bus.publish("a", "fact", {})
    bus.publish("a", "fact", {"again": True})
    assert len(sent) == 2
    bus.publish_many([Signal("b", "fact", {}), Signal("c", "agent.heartbeat", {}), Signal("d", "fact", {})])
    assert len(sent) == 4


def test_a_retry_set_that_cannot_be_read_does_not_spoil_a_publication(bus, client):
    """It counts as one that still needs what is dropped."""
    client.xadd(FACTS_KEY, {"i": "old", "t": "fact", "p": "{}"}, id="1-1")
    SignalConsumer(bus, "g", lambda _: None).drain()
    client.set(f"{FACTS_KEY}:group:g:retry", "theirs")
    assert bus.publish("b", "fact", {}).entry_id
    assert [signal.id for signal in bus.read(["fact"])] == ["b"]


def test_what_another_program_put_among_the_retries_is_passed_over(bus, client):
    seen: list[str] = []
    bus.publish("a", "fact", {})
    client.zadd(f"{FACTS_KEY}:group:g:retry", {"theirs": 0})
    SignalConsumer(bus, "g", lambda signal: seen.append(signal.id)).drain()
    assert seen == ["a"]
    assert not client.exists(f"{FACTS_KEY}:group:g:retry")
