"""Cases from the field: pending entries whose payload is gone, and servers that are full or forget."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import redis
import structlog
from redis.exceptions import OutOfMemoryError

from bus import BusError, Signal, SignalConsumer, open_bus, streams
from bus.redis import bus as redis_bus
from bus.streams import GROUP_BEHIND, GROUP_OVERRUN, Stream
from bus.testing import eventually
from persistence import InMemoryPersistence
from workers import Settings
from workers.composition import Runtime
from workers.signals.alerts import AlertDelivery, Ledger
from workers.signals.deliveries import DeliveryLedger
from workers.signals.two_ledgers import TwoLedgers

pytestmark = pytest.mark.server

FACTS_KEY = "{jarvis:signals}:facts"
TOPIC = "agent.heartbeat.stale"


def alerts(*names: str) -> list[Signal]:
    return [Signal(name, TOPIC, {"agent": name, "last_seen": None, "checked_at": "now"}) for name in names]


# --- E5: pending entries whose payload is gone -----------------------------------------------------------------------------


class People:
    """Those whom alerts reach: ``heard`` are the titles and bodies."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.heard: list[tuple[str, str]] = []
        self._deliver = AlertDelivery(ledger or DeliveryLedger(InMemoryPersistence()), ["json://somewhere"], self._send)

    def _send(self, address: str, title: str, body: str) -> bool:
        self.heard.append((title, body))
        return True

    def consumer(self, bus: Any) -> SignalConsumer:
        """Make the consumer of alerts, under the name that it had before it was restarted."""
        return SignalConsumer(bus, "alerts", self._deliver, topics=(TOPIC,), takeover_after=0.05, name="restarted")


def test_e5_alerts_that_were_trimmed_in_hand_are_lost_once_and_never_empty(server_url: str) -> None:
    client, bus, people = redis.Redis.from_url(server_url), open_bus(server_url), People()
    bus.publish_many(alerts("a", "b", "c"))
    first = bus.join("alerts", "restarted", topics=(TOPIC,), takeover_after=0.05)
    in_hand = first.take(10).deliveries
    first.retry(in_hand[2], 0)
    bus.publish_many(alerts(*(f"later {number}" for number in range(200))))
    client.xtrim(FACTS_KEY, maxlen=50, approximate=False)  # as a program would that caps the stream for everybody

    consumer = people.consumer(bus)
    with structlog.testing.capture_logs() as logs:
        eventually(lambda: consumer.drain() == 0 and bus.groups()[0].pending == 0 and consumer.lost == 3)
        assert people.consumer(bus).drain() == 0
    assert sum(entry["lost"] for entry in logs if "signals lost" in entry["event"]) == 3
    assert [title for title, _ in people.heard] == [f"later {number} has stopped" for number in range(150, 200)]
    assert all("Checked at now" in body for _, body in people.heard)
    (group,) = bus.groups()
    assert (group.unread, group.pending, group.retrying, group.dead) == (0, 0, 0, 0)
    assert bus.dead_letters("alerts") == []
    client.close()


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch) -> Stream:
    """Return the stream of facts, with bounds that a test can reach."""
    facts = Stream("facts", entries=300, retention=3600, window=7200)
    monkeypatch.setattr(streams, "FACTS", facts)
    for module in (streams, redis_bus):
        monkeypatch.setattr(module, "STREAMS", (facts, streams.HEARTBEATS))
    return facts


def told(bus: Any, topic: str) -> list[Any]:
    # On the turn of an hour there may be a second one.
    return [signal.payload for signal in bus.read((topic,))][:1]


def test_e5_our_own_bounds_never_trim_what_a_group_has_in_hand(server_url: str, bounded: Stream) -> None:
    bus, people = open_bus(server_url), People()
    bus.publish_many(alerts("a", "b", "c"))
    bus.join("alerts", "restarted", topics=(TOPIC,), takeover_after=0.05).take(10)
    more = bounded.entries + 200
    bus.publish_many(alerts(*(f"later {number}" for number in range(more))))

    consumer = people.consumer(bus)
    eventually(lambda: consumer.drain() == 0 and bus.groups()[0].pending == 0)

    assert (len(people.heard), consumer.lost) == (3 + more, 0)
    assert {f"{name} has stopped" for name in "abc"} <= {title for title, _ in people.heard}
    assert told(bus, GROUP_BEHIND) == [{"group": "alerts", "stream": "facts"}]
    assert told(bus, GROUP_OVERRUN) == []


def test_e5_what_our_own_bounds_had_to_drop_is_told_and_counted_and_acknowledged(server_url: str, bounded: Stream) -> None:
    bus, people = open_bus(server_url), People()
    bus.publish_many(alerts("a", "b", "c"))
    bus.join("alerts", "restarted", topics=(TOPIC,), takeover_after=0.05).take(10)
    more = bounded.ceiling + 400
    bus.publish_many(alerts(*(f"later {number}" for number in range(more))))
    assert told(bus, GROUP_OVERRUN) == [{"group": "alerts", "stream": "facts"}]

    consumer = people.consumer(bus)
    eventually(lambda: consumer.drain() == 0 and bus.groups()[0].pending == 0)

    assert consumer.lost == 3
    assert people.heard[-1][0] == f"later {more - 1} has stopped"
    assert len(people.heard) >= bounded.entries
    assert all(title.startswith("later") and "Checked at now" in body for title, body in people.heard)


# --- E7: a server that is full, or forgets -----------------------------------------------------------------------------------

MEGABYTES = 3


class Small:
    """A server of the test's own with little memory, and what fills it."""

    def __init__(self, url: str, policy: str) -> None:
        self.client = redis.Redis.from_url(url)
        self._numbers = count()
        self.client.config_set("maxmemory-policy", policy)
        self.client.config_set("maxmemory", f"{MEGABYTES}mb")

    def fill(self) -> None:
        """Put in what a cache would, until nothing more goes in, however small."""
        with pytest.raises(OutOfMemoryError):
            self.cache(100_000)
        # The buffer of one connection more or less must not make room.
        self.client.config_set("maxmemory", self.client.info("memory")["used_memory"] * 9 // 10)

    def cache(self, entries: int) -> None:
        for number in islice(self._numbers, entries):
            self.client.set(f"cache:{number}", b"." * 4096)

    def cache_until_forgotten(self, pattern: str) -> None:
        """Put in what a cache would, until the server has dropped all these keys for it."""
        eventually(lambda: self.cache(200) or self.client.keys(pattern) == [])

    def free(self) -> None:
        self.client.delete(*self.client.keys("cache:*"))


@pytest.fixture
def process(server: Any, tmp_path: Path) -> Iterator[Callable[[], tuple[Runtime, TwoLedgers]]]:
    """Return what a process of a mesh on the server of the test has of it: each time another process, on the same machine."""
    with ExitStack() as stack:

        def begin() -> tuple[Runtime, TwoLedgers]:
            runtime = Runtime(Settings.load(redis_url=server.url, home=tmp_path))
            stack.callback(runtime.close)
            return runtime, TwoLedgers(DeliveryLedger(runtime.deliveries), DeliveryLedger(runtime.deliveries_here))

        yield begin


def test_e7_a_full_server_takes_no_signal_but_what_it_has_reaches_people_and_then_all_goes_on(
    server: Any, process: Callable[[], tuple[Runtime, TwoLedgers]]
) -> None:
    small = Small(server.url, "noeviction")
    runtime, ledger = process()
    bus, people = runtime.signals, People(ledger)
    consumer = people.consumer(bus)
    bus.publish_many(alerts("before"))
    assert consumer.drain() == 1
    bus.publish_many(alerts("waiting"))
    small.fill()
    with pytest.raises(BusError, match=r"out of memory .*: raise maxmemory or free space"):
        bus.publish_many(alerts("during"))
    assert consumer.drain() == 1

    small.free()
    bus.publish_many(alerts("before", "waiting", "during", "after"))
    assert consumer.drain() == 2
    assert [title for title, _ in people.heard] == [f"{name} has stopped" for name in ("before", "waiting", "during", "after")]
    assert [signal.id for signal in bus.read((TOPIC,))] == ["before", "waiting", "during", "after"]


def test_e7_an_alert_whose_keys_a_server_has_evicted_is_not_sent_again(
    server: Any, process: Callable[[], tuple[Runtime, TwoLedgers]]
) -> None:
    """Sweep before, during and after: the server forgets stream, ids and deliveries, and nobody is alerted twice."""
    small = Small(server.url, "allkeys-lru")
    heard: list[str] = []

    def sweep() -> None:
        """Find the same agent silent, in a process that knows nothing of the others."""
        runtime, ledger = process()
        people = People(ledger)
        runtime.signals.publish("watchdog/a/missing", TOPIC, alerts("a")[0].payload)
        people.consumer(runtime.signals).drain()
        heard.extend(title for title, _ in people.heard)

    sweep()
    assert heard == ["a has stopped"]
    for _ in range(3):
        small.cache_until_forgotten("*jarvis*")
        sweep()
    small.client.config_set("maxmemory-policy", "noeviction")
    small.free()
    sweep()
    assert heard == ["a has stopped"]
