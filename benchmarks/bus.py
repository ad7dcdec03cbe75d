"""The cost of the bus: publishing and consuming against the raw stream commands, memory, and how soon a death is noticed."""

import itertools
import statistics
import threading
import time
from collections.abc import Callable

import redis

from benchmarks.measuring import ROUNDS, report, seconds
from bus import RedisLedger, RedisSignalBus, Signal, SignalConsumer

SIGNALS = 2000
"""Signals of one measurement."""
STORED = 20_000
"""Signals whose memory is measured."""
TAKEOVER_AFTER = 0.5
PAYLOAD = {"agent": "research", "last_seen": "2026-11-30T06:00:00+00:00", "checked_at": "2026-11-30T06:05:00+00:00", "n": 17}
RAW = b'{"agent":"research","last_seen":"2026-11-30T06:00:00+00:00","checked_at":"2026-11-30T06:05:00+00:00","n":17}'
TOPIC = "agent.heartbeat.stale"

_ids = itertools.count()


def measure(client: redis.Redis) -> None:
    """Print the figures."""
    bus = RedisSignalBus(client, "bench")
    report("Publishing", _publishing(client, bus))
    report("Consuming", _consuming(client, bus))
    report("Memory", [("a million signals and their remembered ids", f"{_memory(client) * 1_000_000 / 2**20:.0f} MiB")])
    report("Takeover", [(f"of a dead consumer's signal, after {TAKEOVER_AFTER} s", f"{_takeover(client):.2f} s")])


def _publishing(client: redis.Redis, bus: RedisSignalBus) -> list[tuple[str, str]]:
    raw, ours, batch = [], [], []
    for _ in range(ROUNDS):
        raw.append(_each(lambda: client.xadd("raw", {"i": _name(), "t": TOPIC, "p": RAW})))
        ours.append(_each(lambda: bus.publish(_name(), TOPIC, PAYLOAD)))
        batch.append(seconds(lambda: bus.publish_many([Signal(_name(), TOPIC, PAYLOAD) for _ in range(SIGNALS)])) / SIGNALS)
    of_call = statistics.median(_mean(one) / _mean(other) for one, other in zip(ours, raw, strict=True))
    of_batch = statistics.median(_mean(one) / other for one, other in zip(ours, batch, strict=True))
    return [
        ("raw XADD", _latency(raw)),
        ("publish", f"{_latency(ours)}, {of_call:.2f} times the raw call (median of {ROUNDS})"),
        ("publish_many, a signal", f"{min(batch) * 1e6:.0f} us, {of_batch:.1f} times the rate of single calls"),
    ]


def _consuming(client: redis.Redis, bus: RedisSignalBus) -> list[tuple[str, str]]:
    client.xgroup_create("raw", "g", "0")
    raw = seconds(lambda: [_raw_turn(client) for _ in range(SIGNALS)]) / SIGNALS
    plain = _drained(bus, "plain", lambda _: None)
    once = _drained(bus, "once", lambda _, pipe: pipe.incr("effect"), ledger=RedisLedger(client))
    return [
        ("raw XREADGROUP of one and XACK", f"{1 / raw:.0f} a second"),
        ("consumer, a signal", f"{1 / plain:.0f} a second, {raw / plain:.2f} times the raw rate"),
        ("consumer with a ledger in Redis", f"{1 / once:.0f} a second, {raw / once:.2f} times the raw rate"),
    ]


def _raw_turn(client: redis.Redis) -> None:
    ((_, ((entry, _),)),) = client.xreadgroup("g", "c", {"raw": ">"}, count=1)
    client.xack("raw", "g", entry)


def _drained(bus: RedisSignalBus, group: str, handler: Callable[..., None], **options: RedisLedger) -> float:
    bus.publish_many([Signal(_name(), TOPIC, PAYLOAD) for _ in range(SIGNALS)])
    consumer = SignalConsumer(bus, group, handler, topics=(TOPIC,), **options)
    handled = 0

    def drain() -> None:
        nonlocal handled
        handled = consumer.drain()

    return seconds(drain) / handled


def _memory(client: redis.Redis) -> float:
    """Bytes of a signal with its remembered id."""
    client.flushall()
    before = client.info("memory")["used_memory"]
    RedisSignalBus(client, "memory").publish_many([Signal(_name(), TOPIC, PAYLOAD) for _ in range(STORED)])
    return (client.info("memory")["used_memory"] - before) / STORED


def _takeover(client: redis.Redis) -> float:
    """Seconds from the death of a consumer until another one, which was idle, has handled its signal."""
    bus, handled = RedisSignalBus(client, "takeover"), threading.Event()
    heir = SignalConsumer(bus, "g", lambda _: handled.set(), topics=(TOPIC,), takeover_after=TAKEOVER_AFTER)
    bus.publish("held", TOPIC, PAYLOAD)
    bus.join("g", "dies", topics=(TOPIC,), takeover_after=TAKEOVER_AFTER).take(1)
    thread = threading.Thread(target=heir.run)
    took = seconds(lambda: (thread.start(), handled.wait(60)))
    heir.stop()
    thread.join()
    return took


def _name() -> str:
    return f"watchdog/research/{next(_ids)}"


def _each(act: Callable[[], object]) -> list[float]:
    """The durations of so many calls."""
    moments = [time.perf_counter()]
    for _ in range(SIGNALS):
        act()
        moments.append(time.perf_counter())
    return [later - earlier for earlier, later in itertools.pairwise(moments)]


def _mean(durations: list[float]) -> float:
    return statistics.fmean(durations)


def _latency(rounds: list[list[float]]) -> str:
    durations = sorted(itertools.chain(*rounds))
    middle, late = (durations[int(len(durations) * part)] for part in (0.5, 0.99))
    return f"{middle * 1e6:.0f} us (of a hundred, one takes {late * 1e6:.0f} us or more)"
