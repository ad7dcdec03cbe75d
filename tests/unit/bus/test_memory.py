"""What the in-memory bus keeps and forgets, by its own clock."""

from datetime import UTC, datetime, timedelta

import pytest

from bus import InMemorySignalBus, Signal, SignalConsumer
from bus.streams import FACTS, HEARTBEATS


class Clock:
    def __init__(self):
        self.now = datetime(2026, 11, 30, 6, tzinfo=UTC)

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def bus(clock):
    return InMemorySignalBus(clock)


def test_times_follow_the_given_clock(bus, clock):
    assert bus.publish("a", "t", {}).published_at == clock.now


def test_entries_stay_in_order_when_the_clock_goes_back(bus, clock):
    first = bus.publish("a", "t", {})
    clock.advance(-3600)
    second = bus.publish("b", "t", {})
    assert bus.read() == [first, second]
    assert second.published_at == first.published_at


def test_beats_are_bounded_and_never_crowd_out_facts(bus):
    bus.publish("fact", "fact", {})
    bus.publish_many([Signal(str(n), "agent.heartbeat", {}) for n in range(HEARTBEATS.entries + 5)])
    beats = bus.read(("agent.heartbeat",), limit=10_000)
    assert [beats[0].id, len(beats)] == ["5", HEARTBEATS.entries]
    assert [signal.id for signal in bus.read(("fact",))] == ["fact"]


def test_old_facts_go_when_something_new_is_published(bus, clock):
    bus.publish("old", "fact", {})
    clock.advance(FACTS.retention + 1)
    bus.publish("new", "fact", {})
    assert [signal.id for signal in bus.read()] == ["new"]


def test_an_id_is_remembered_from_its_last_publication_on(bus, clock):
    first = bus.publish("a", "fact", {"n": 1})
    for _ in range(3):
        clock.advance(FACTS.window - 1)
        again = bus.publish("a", "fact", {"n": 2})
        assert again.entry_id == first.entry_id
    # The first content has left the bus: the place is known, the content is the offered one.
    assert again.payload == {"n": 2}
    clock.advance(FACTS.window + 1)
    assert bus.publish("a", "fact", {"n": 3}).entry_id != first.entry_id


def test_a_retry_comes_when_the_clock_says_so(bus, clock):
    outcomes = [ValueError("not yet"), None]

    def handler(_):
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome

    bus.publish("a", "fact", {})
    consumer = SignalConsumer(bus, "g", handler, backoff=lambda _: 100)
    assert consumer.drain() == 0
    clock.advance(99)
    assert consumer.drain() == 0
    clock.advance(1)
    assert consumer.drain() == 1


def test_what_was_trimmed_in_hand_is_counted_once_and_cleared(bus, clock):
    bus.publish_many([Signal("held", "fact", {}), Signal("failed", "fact", {})])
    reader = bus.join("g", "dead", takeover_after=60)
    _, failed = reader.take(2).deliveries
    reader.retry(failed, 10)
    clock.advance(FACTS.retention + 1)
    bus.publish("new", "fact", {})
    consumer = SignalConsumer(bus, "g", lambda _: None, topics=("fact",))
    assert consumer.drain() == 1
    assert consumer.lost == 2
    assert consumer.drain() == 0
    assert consumer.lost == 2
    assert bus.groups()[0].pending == 0


def test_a_dead_letter_whose_entry_was_trimmed_is_shown_but_not_replayed(bus, clock):
    published = bus.publish("a", "fact", {"x": 1})

    def failing(_):
        raise ValueError

    SignalConsumer(bus, "g", failing, max_deliveries=1).drain()
    clock.advance(FACTS.retention + 1)
    bus.publish("new", "fact", {})
    assert bus.replay("g", [published.entry_id]) == 0
    assert bus.dead_letters("g")[0].signal == published
