"""Consumers that die, servers that restart, replies that are lost: on real servers and real processes."""

import subprocess
import sys
import threading
import time

import pytest
import redis
import structlog

from bus import BusError, GroupInfo, RedisSignalBus, Signal, SignalConsumer, open_bus
from bus.testing import eventually

pytestmark = pytest.mark.server

FACTS_KEY = "{jarvis:signals}:facts"

DYING_CONSUMER = """
import os, signal, sys
from bus import SignalConsumer, open_bus

def die(_):
    print("in hand", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

SignalConsumer(open_bus(sys.argv[1]), "g", die, takeover_after=0.3).run()
"""

SIGTERM_CONSUMER = """
import signal, sys, time
from bus import SignalConsumer, open_bus

def handle(fact):
    print("begun", flush=True)
    time.sleep(0.3)
    print("done", fact.id, flush=True)

consumer = SignalConsumer(open_bus(sys.argv[1]), "g", handle)
signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
consumer.run()
"""


@pytest.fixture
def running():
    """Run consumers in threads; each is stopped and joined at the end."""
    started = []

    def start(consumer):
        thread = threading.Thread(target=consumer.run)
        thread.start()
        started.append((consumer, thread))

    yield start
    for consumer, _ in started:
        consumer.stop()
    for _, thread in started:
        thread.join(30)
        assert not thread.is_alive()


def facts(*ids):
    return [Signal(name, "fact", {}) for name in ids]


def test_what_a_killed_process_had_in_hand_is_handled_by_another(server_url, running):
    bus, seen = open_bus(server_url), []
    bus.publish_many(facts("a", "b", "c"))
    killed = subprocess.run([sys.executable, "-c", DYING_CONSUMER, server_url], capture_output=True, timeout=60, check=False)
    assert (killed.returncode, killed.stdout) == (-9, b"in hand\n")
    assert bus.groups()[0].pending == 3
    running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), takeover_after=0.3))
    eventually(lambda: sorted(seen) == ["a", "b", "c"])
    eventually(lambda: bus.groups()[0].pending == 0)


def test_a_signal_that_kills_its_process_becomes_a_dead_letter(server_url, running):
    bus, seen = open_bus(server_url), []
    bus.publish("killer", "fact", {})
    for _ in range(2):
        subprocess.run([sys.executable, "-c", DYING_CONSUMER, server_url], capture_output=True, timeout=60, check=False)
    bus.publish("harmless", "fact", {})
    running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), takeover_after=0.3, max_deliveries=2))
    eventually(lambda: [letter.signal.id for letter in bus.dead_letters("g")] == ["killer"])
    assert bus.dead_letters("g")[0].attempts == 3
    eventually(lambda: seen == ["harmless"])


def test_a_terminated_process_finishes_what_it_handles_and_gives_back_the_rest(server_url):
    bus = open_bus(server_url)
    bus.publish_many(facts("a", "b"))
    with subprocess.Popen([sys.executable, "-c", SIGTERM_CONSUMER, server_url], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"begun\n"
        process.terminate()
        assert process.stdout.read() == b"done a\n"
        assert process.wait(30) == 0
    seen = []
    assert SignalConsumer(bus, "g", lambda signal: seen.append(signal.id)).drain() == 1
    assert seen == ["b"]


def test_a_long_pending_list_is_taken_over_to_its_end(server_url):
    bus, seen = open_bus(server_url), set()
    bus.publish_many(facts(*(str(number) for number in range(500))))
    bus.join("g", "dead", takeover_after=0.05).take(500)
    heir = SignalConsumer(bus, "g", lambda signal: seen.add(signal.id), topics=("fact",), takeover_after=0.05)
    eventually(lambda: heir.drain() == 0 and len(seen) == 500)
    assert bus.groups()[0].pending == 0


def test_a_restart_with_its_data_loses_and_repeats_nothing(server, running):
    bus, seen = open_bus(server.url), []
    bus._link._retry_delays = (0.05, 0.2)  # with its usual patience it may say nothing within the time of `eventually`
    with structlog.testing.capture_logs() as logs:
        running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), takeover_after=30))
        bus.publish_many(facts("a", "b"))
        eventually(lambda: seen == ["a", "b"])
        server.kill()
        eventually(lambda: any("trying again" in entry["event"] for entry in logs))
        server.start()
        bus.publish_many(facts("b", "c"))
        eventually(lambda: seen == ["a", "b", "c"])
        eventually(lambda: any("is over" in entry["event"] for entry in logs))
    assert [entry["log_level"] for entry in logs if "trouble" in entry["event"]] == ["warning", "info"]


def test_a_restart_without_its_data_is_survived(server, running):
    bus, seen = open_bus(server.url), []
    running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), start="end"))
    eventually(lambda: len(bus.groups()) == 1)
    bus.publish("a", "fact", {})
    eventually(lambda: seen == ["a"])
    server.kill()
    server.forget_data()
    server.start()
    bus.publish("b", "fact", {})
    eventually(lambda: seen == ["a", "b"])


def test_publishing_waits_for_a_server_that_is_starting(server):
    bus = open_bus(server.url)
    bus.publish("a", "fact", {})
    server.kill()
    starting = threading.Timer(0.5, server.start)
    starting.start()
    try:
        assert bus.publish("b", "fact", {}).id == "b"
    finally:
        starting.join()


def test_forgotten_scripts_are_loaded_again(server_url):
    bus, seen = open_bus(server_url), []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id))
    for name in ("a", "b"):
        bus.publish(name, "fact", {})
        redis.Redis.from_url(server_url).script_flush()
        assert consumer.drain() == 1
        redis.Redis.from_url(server_url).script_flush()
    assert seen == ["a", "b"]


LOSING: set[str] = set()
"""Commands whose next reply gets lost."""


class LosesReplies(redis.UnixDomainSocketConnection):
    """A connection that loses replies after the server has run the command."""

    _command = ""

    def send_command(self, *args, **kwargs):
        self._command = str(args[0])
        super().send_command(*args, **kwargs)

    def read_response(self, *args, **kwargs):
        reply = super().read_response(*args, **kwargs)
        if self._command in LOSING:
            LOSING.discard(self._command)
            self.disconnect()
            raise redis.ConnectionError("the reply was lost")
        return reply


@pytest.fixture
def losing_bus(server_url):
    plain = open_bus(server_url)
    # The scripts are known to the server before replies get lost.
    plain.publish("warm", "warm", {})
    options = redis.Redis.from_url(server_url).connection_pool.connection_kwargs
    pool = redis.ConnectionPool(connection_class=LosesReplies, path=options["path"], db=0)
    return RedisSignalBus(redis.Redis(connection_pool=pool))


def test_a_publication_whose_reply_was_lost_is_there_once(losing_bus):
    LOSING.add("EVALSHA")
    published = losing_bus.publish("a", "fact", {"x": 1})
    assert not LOSING
    assert losing_bus.read(("fact",)) == [published]


def test_a_take_whose_reply_was_lost_comes_back_after_the_takeover_time(losing_bus, running):
    seen = []
    consumer = SignalConsumer(losing_bus, "g", lambda signal: seen.append(signal.id), topics=("fact",), takeover_after=0.3)
    consumer.drain()
    losing_bus.publish("a", "fact", {})
    LOSING.add("EVALSHA")
    running(SignalConsumer(losing_bus, "g", lambda signal: seen.append(signal.id), topics=("fact",), takeover_after=0.3))
    eventually(lambda: seen == ["a"])
    assert not LOSING


def test_an_idle_consumer_gets_a_new_signal_at_once(server_url, running):
    bus, seen = open_bus(server_url), []
    running(SignalConsumer(bus, "g", lambda signal: seen.append((signal.id, time.monotonic()))))
    eventually(lambda: bool(bus.groups()))
    delays = []
    for number in range(10):
        published = time.monotonic()
        bus.publish(str(number), "fact", {})
        eventually(lambda number=number: len(seen) == number + 1)
        delays.append(seen[-1][1] - published)
    # Far below the second after which an idle consumer looks again by itself.
    assert sorted(delays)[5] < 0.5


def test_a_client_with_a_short_time_out_still_waits_without_errors(server_url):
    bus = RedisSignalBus(redis.Redis.from_url(server_url, socket_timeout=0.4))
    reader = bus.join("g", "c", takeover_after=60)
    reader.take(1)
    reader.wait(1.0)


def test_beats_are_bounded_and_never_crowd_out_facts(server_url):
    bus = open_bus(server_url)
    bus.publish("fact", "fact", {})
    bus.publish_many([Signal(str(number), "agent.heartbeat", {}) for number in range(2_000)])
    assert 1_000 <= len(bus.read(("agent.heartbeat",), limit=10_000)) <= 1_200
    assert [signal.id for signal in bus.read(("fact",))] == ["fact"]


def test_signals_trimmed_in_hand_are_counted_once_and_cleared(server_url):
    client, bus = redis.Redis.from_url(server_url), open_bus(server_url)
    bus.publish_many(facts("a", "b", "c"))
    bus.join("g", "dead", topics=("fact",), takeover_after=0.05).take(3)
    client.xtrim(FACTS_KEY, maxlen=1, approximate=False)
    seen = []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), topics=("fact",), takeover_after=0.05)
    eventually(lambda: consumer.drain() == 0 and len(seen) > 0)
    assert (seen, consumer.lost) == (["c"], 2)
    assert client.xpending(FACTS_KEY, "g")["pending"] == 0


def test_a_group_that_was_destroyed_goes_on_where_it_was(server_url, running):
    client, bus, seen = redis.Redis.from_url(server_url), open_bus(server_url), []
    running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), topics=("fact",)))
    bus.publish("a", "fact", {})
    eventually(lambda: seen == ["a"])
    client.xgroup_destroy(FACTS_KEY, "g")
    bus.publish("b", "fact", {})
    eventually(lambda: seen == ["a", "b"])


@pytest.fixture
def full(server_url):
    """Make the server refuse whatever needs memory, until the end of the test."""
    client = redis.Redis.from_url(server_url)
    yield lambda: client.config_set("maxmemory", 1)
    client.config_set("maxmemory", 0)


def test_a_full_server_refuses_publications_and_loses_no_failed_signal(server_url, full):
    bus = open_bus(server_url)
    bus.publish_many(facts("a", "b"))
    reader = bus.join("g", "c", topics=("fact",), takeover_after=60)
    dead, put_off = reader.take(2).deliveries
    full()
    with pytest.raises(BusError, match="out of memory"):
        bus.publish("c", "fact", {})
    reader.bury(dead, "dead")
    reader.retry(put_off, 0)
    assert bus.groups() == [GroupInfo("g", unread=0, pending=0, retrying=1, dead=1)]
    assert [delivery.signal.id for delivery in reader.take(1).deliveries] == ["b"]
    assert [signal.id for signal in bus.read()] == ["a", "b"]


def test_concurrent_publishers_of_one_id_all_get_the_same_entry(server_url):
    published = []

    def publish(number):
        published.append(open_bus(server_url).publish("a", "fact", {"publisher": number}))

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(published) == 8
    assert all(signal == published[0] for signal in published)
    assert open_bus(server_url).read() == [published[0]]


def troubles(logs):
    return [entry["log_level"] for entry in logs if "trouble" in entry["event"]]


def test_a_consumer_waits_while_its_server_is_a_replica_and_says_so_once(server, running):
    bus, seen, client = open_bus(server.url), [], redis.Redis.from_url(server.url)
    bus._link._retry_delays = (0.05, 0.2)  # how long it tries is not the matter here
    with structlog.testing.capture_logs() as logs:
        running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id)))
        bus.publish("before", "fact", {})
        eventually(lambda: seen == ["before"])
        client.replicaof("127.0.0.1", 1)
        with pytest.raises(BusError, match="read-only replica"):
            bus.publish("refused", "fact", {})
        eventually(lambda: troubles(logs) == ["warning"])
        client.replicaof("NO", "ONE")
        bus.publish("after", "fact", {})
        eventually(lambda: seen == ["before", "after"])
        eventually(lambda: troubles(logs) == ["warning", "info"])
    client.close()


def test_a_consumer_of_a_server_that_hangs_goes_on_within_seconds_after_it_wakes(server, running):
    bus = RedisSignalBus(redis.Redis.from_url(server.url, socket_timeout=0.5))
    seen = []
    with structlog.testing.capture_logs() as logs:
        running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), topics=("fact",), takeover_after=0.5))
        eventually(lambda: bool(bus.groups()))
        server.freeze()
        try:
            # The blocked read finds out by itself that nobody answers.
            eventually(lambda: troubles(logs) == ["warning"])
        finally:
            server.wake()
        bus.publish("after", "fact", {})
        eventually(lambda: seen == ["after"])
        eventually(lambda: troubles(logs) == ["warning", "info"])


def test_a_consumer_of_a_full_server_handles_what_is_there(server_url, full):
    bus, seen = open_bus(server_url), []
    bus.publish_many(facts("a", "b"))
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), topics=("fact",))
    assert consumer.drain() == 2
    bus.publish_many(facts("c", "d"))
    full()
    assert consumer.drain() == 2
    assert seen == ["a", "b", "c", "d"]
