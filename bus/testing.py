"""The contract of a signal bus as tests, for every transport, also one of your own. That of a ledger: `bus.ledgers.testing`.

Subclass `SignalBusContract` in a test module and give it a fixture ``bus`` that returns an empty bus.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bus.consumer import SignalConsumer
from bus.contract import END, Delivery, GroupInfo, Signal, SignalBus
from bus.errors import BusError
from bus.failure import Backoff, chosen
from bus.payload import PAYLOAD_LIMIT
from bus.streams import GROUP_BEHIND, GROUP_OVERRUN, HEARTBEAT_TOPIC, HEARTBEATS

__all__ = ["SignalBusContract", "eventually"]

AT_ONCE = Backoff(first=0)
_DEADLINE = 10.0


def eventually(condition: Callable[[], bool], deadline: float = _DEADLINE) -> None:
    """Return when the condition holds; fail when it does not within so many seconds."""
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"not so after {deadline} seconds")
        time.sleep(0.01)


class Failing:
    """A handler that fails for some ids, and remembers what it saw."""

    def __init__(self, *failing: str) -> None:
        self.failing = set(failing)
        self.seen: list[str] = []

    def __call__(self, signal: Signal) -> None:
        """Note the signal; raise when its id is among the failing ones."""
        self.seen.append(signal.id)
        if signal.id in self.failing:
            raise ValueError(f"no way with {signal.id}")


def _facts(*ids: str) -> list[Signal]:
    return [Signal(name, "fact", {}) for name in ids]


def _consume(bus: SignalBus, handler: Callable[[Signal], Any], group: str = "g", **options: Any) -> SignalConsumer:
    return SignalConsumer(bus, group, handler, **options)


class SignalBusContract:
    """What `bus.contract` promises. Each test gets a new, empty ``bus``."""

    # Publishing

    def test_a_publication_comes_back_with_its_time_and_place(self, bus: SignalBus) -> None:
        signal = bus.publish("a", "briefing.ready", {"date": "2026-11-30"})
        assert (signal.id, signal.topic, signal.payload) == ("a", "briefing.ready", {"date": "2026-11-30"})
        assert signal.published_at is not None
        assert abs(datetime.now(UTC) - signal.published_at) < timedelta(minutes=1)
        assert signal.entry_id
        assert bus.read() == [signal]

    def test_a_repeated_publication_returns_the_first_entry(self, bus: SignalBus) -> None:
        first = bus.publish("a", "t", {"checked": 1})
        assert bus.publish("a", "other", {"checked": 2}) == first
        assert bus.read() == [first]

    def test_strict_refuses_other_content_and_takes_the_same(self, bus: SignalBus) -> None:
        first = bus.publish("a", "t", {"x": 1, "y": 2})
        assert bus.publish("a", "t", {"y": 2, "x": 1}, strict=True) == first
        for topic, payload in (("t", {"x": 1, "y": 2.0}), ("t", {"x": True, "y": 2}), ("u", {"x": 1, "y": 2})):
            with pytest.raises(BusError, match="new id"):
                bus.publish("a", topic, payload, strict=True)
        assert bus.read() == [first]

    def test_a_batch_is_published_in_order_each_id_once(self, bus: SignalBus) -> None:
        known = bus.publish("b", "fact", {})
        batch = [*_facts("a", "b", "c", "a"), Signal("beat", "agent.heartbeat", {})]
        published = bus.publish_many(batch)
        assert [signal.id for signal in published] == ["a", "b", "c", "a", "beat"]
        assert published[1] == known
        assert published[3] == published[0]
        assert [signal.id for signal in bus.read(("fact",))] == ["b", "a", "c"]

    def test_a_batch_with_one_bad_signal_publishes_nothing(self, bus: SignalBus) -> None:
        with pytest.raises(BusError):
            bus.publish_many([Signal("a", "t", {}), Signal("b", "not a topic", {})])
        assert bus.read() == []

    def test_an_empty_batch_is_nothing(self, bus: SignalBus) -> None:
        assert bus.publish_many([]) == []

    def test_payloads_come_back_as_they_went_in(self, bus: SignalBus) -> None:
        payload: dict[str, Any] = {
            "text": 'ü € 𝄞 "\\ \n\x00',
            "numbers": [0, -1, 2**70, 0.1, -0.0, 1e300],
            "nothing": None,
            "empty": [{}, [], ""],
            "": True,
        }
        bus.publish("a", "t", payload)
        returned = bus.read()[0].payload
        assert repr(returned) == repr(payload)

    def test_a_payload_may_fill_its_limit_and_no_more(self, bus: SignalBus) -> None:
        around = len('{"x":""}')
        bus.publish("a", "t", {"x": "y" * (PAYLOAD_LIMIT - around)})
        with pytest.raises(BusError, match="publish its key"):
            bus.publish("b", "t", {"x": "y" * (PAYLOAD_LIMIT - around + 1)})

    def test_a_changed_payload_does_not_change_the_bus(self, bus: SignalBus) -> None:
        payload = {"list": [1]}
        bus.publish("a", "t", payload)
        bus.read()[0].payload["list"].append(2)
        payload["list"].append(3)
        assert bus.read()[0].payload == {"list": [1]}

    # Reading without a group

    def test_reading_filters_by_topic_over_all_streams(self, bus: SignalBus) -> None:
        bus.publish_many([Signal("1", "agent.heartbeat", {}), Signal("2", "agent.heartbeat.stale", {}), Signal("3", "x", {})])
        assert {signal.id for signal in bus.read()} == {"1", "2", "3"}
        assert [signal.id for signal in bus.read(("agent.heartbeat",))] == ["1"]
        assert [signal.id for signal in bus.read(("agent.*.*", "nothing"))] == ["2"]
        assert {signal.id for signal in bus.read(("agent.#",))} == {"1", "2"}

    def test_pages_follow_each_other_without_gap_or_repetition(self, bus: SignalBus) -> None:
        expected = bus.publish_many([Signal(str(n), "agent.heartbeat" if n % 3 else "fact", {}) for n in range(25)])
        read: list[Signal] = []
        page = bus.read(limit=4)
        while page:
            read += page
            page = bus.read(after=page.position, limit=4)
        assert sorted(read, key=lambda signal: int(signal.id)) == expected
        bus.publish("late", "agent.heartbeat", {})
        assert [signal.id for signal in bus.read(after=page.position)] == ["late"]

    def test_a_page_without_a_match_still_moves_on(self, bus: SignalBus) -> None:
        bus.publish_many(_facts("a", "b"))
        page = bus.read(("rare",))
        assert page == []
        bus.publish("c", "fact", {})
        assert [signal.id for signal in bus.read(after=page.position)] == ["c"]

    def test_an_entry_id_is_a_place_to_read_from(self, bus: SignalBus) -> None:
        first, second, third = bus.publish_many(_facts("a", "b", "c"))
        assert bus.read(("fact",), after=first.entry_id) == [second, third]

    def test_a_position_divides_before_from_after_in_every_stream(self, bus: SignalBus) -> None:
        empty = bus.position()
        bus.publish_many([*_facts("a"), Signal("beat 1", "agent.heartbeat", {})])
        position = bus.position()
        assert bus.read(after=position) == []
        bus.publish_many([*_facts("b"), Signal("beat 2", "agent.heartbeat", {})])
        assert {signal.id for signal in bus.read(after=position)} == {"b", "beat 2"}
        assert len(bus.read(after=empty)) == 4

    def test_misuse_of_reading_is_told(self, bus: SignalBus) -> None:
        with pytest.raises(BusError, match="not a place on the bus"):
            bus.read(after="17")
        with pytest.raises(BusError, match="pattern"):
            bus.read(("a..b",))
        with pytest.raises(BusError, match="1 or more"):
            bus.read(limit=0)

    # Groups

    def test_each_group_gets_every_signal_once(self, bus: SignalBus) -> None:
        bus.publish_many(_facts(*(str(n) for n in range(50))))
        for group in ("one", "other"):
            seen = Failing()
            assert _consume(bus, seen, group).drain() == 50
            assert seen.seen == [str(n) for n in range(50)]
            assert _consume(bus, seen, group).drain() == 0

    def test_members_of_a_group_share_its_signals(self, bus: SignalBus) -> None:
        readers = [bus.join("g", name, takeover_after=60) for name in ("a", "b")]
        bus.publish_many(_facts("1", "2", "3", "4"))
        shares = [[delivery.signal.id for delivery in reader.take(2).deliveries] for reader in readers]
        assert shares == [["1", "2"], ["3", "4"]]

    def test_other_topics_are_acknowledged_unseen(self, bus: SignalBus) -> None:
        bus.publish_many([Signal("a", "alert.new", {}), Signal("b", "noise", {}), Signal("c", "agent.heartbeat", {})])
        seen = Failing()
        assert _consume(bus, seen, topics=("alert.#",)).drain() == 1
        assert seen.seen == ["a"]
        assert bus.groups() == [GroupInfo("g", unread=0, pending=0, retrying=0, dead=0)]

    def test_a_group_may_start_at_the_end_or_behind_an_entry(self, bus: SignalBus) -> None:
        first, _ = bus.publish_many(_facts("a", "b"))
        assert first.entry_id is not None
        at_end, behind = Failing(), Failing()
        assert _consume(bus, at_end, "at end", start=END).drain() == 0
        position = bus.position()
        bus.publish("c", "fact", {})
        assert _consume(bus, at_end, "at end", start=END).drain() == 1
        assert _consume(bus, behind, "behind a", topics=("fact",), start=first.entry_id).drain() == 2
        assert _consume(bus, behind, "behind position", start=position).drain() == 1
        assert (at_end.seen, behind.seen) == (["c"], ["b", "c", "c"])

    def test_a_group_may_start_at_a_time(self, bus: SignalBus) -> None:
        first = bus.publish("a", "fact", {})
        assert first.published_at is not None
        later = first.published_at + timedelta(milliseconds=5)
        eventually(lambda: datetime.now(UTC) > later)
        second, beat = bus.publish_many([*_facts("b"), Signal("beat", HEARTBEAT_TOPIC, {})])
        assert second.published_at is not None
        assert beat.published_at is not None
        seen = Failing()
        assert _consume(bus, seen, "at a", start=first.published_at).drain() == 3
        assert _consume(bus, seen, "at b", start=min(second.published_at, beat.published_at)).drain() == 2
        assert _consume(bus, seen, "later", start=beat.published_at + timedelta(milliseconds=1)).drain() == 0
        assert sorted(seen.seen) == ["a", "b", "b", "beat", "beat"]
        with pytest.raises(BusError, match="time zone"):
            _consume(bus, seen, "naive", start=datetime(2026, 11, 30))  # noqa: DTZ001 - that is what is refused

    def test_groups_tell_their_oldest_signals_and_who_reads_them(self, bus: SignalBus) -> None:
        first, second, third = bus.publish_many(_facts("a", "b", "c"))
        reader = bus.join("g", "c", topics=("fact",), takeover_after=60)
        reader.take(1)
        (info,) = bus.groups()
        assert (info.oldest_pending, info.oldest_unread) == (first.published_at, second.published_at)
        assert info.consumers == 1
        assert info.idle is not None
        assert info.idle < _DEADLINE
        assert not info.abandoned
        reader.acknowledge(reader.take(2).deliveries)
        (info,) = bus.groups()
        assert (info.oldest_pending, info.oldest_unread) == (first.published_at, None)
        reader.give_back([Delivery(first, 1)])
        reader.leave()
        (info,) = bus.groups()
        assert (info.oldest_pending, info.consumers, info.idle, info.abandoned) == (None, 0, None, True)
        bus.join("g", "waiting", topics=("fact",), takeover_after=60).take(1)
        assert bus.groups()[0].consumers == 1
        assert third.published_at is not None

    def test_a_consumer_that_died_is_forgotten_once_nothing_is_in_its_hands(self, bus: SignalBus) -> None:
        bus.publish_many(_facts("a", "b"))
        assert len(bus.join("g", "dead", topics=("fact",), takeover_after=0.05).take(2).deliveries) == 2
        handler = Failing()
        heir = bus.join("g", "heir", topics=("fact",), takeover_after=0.05)

        def look() -> bool:
            for delivery in heir.take(10).deliveries:
                handler(delivery.signal)
                heir.acknowledge([delivery])
            return len(handler.seen) == 2 and bus.groups()[0].consumers == 1

        eventually(look)
        assert sorted(handler.seen) == ["a", "b"]

    # Bounds

    def test_a_stream_holds_what_a_slow_group_needs_and_says_so(self, bus: SignalBus) -> None:
        bus.join("slow", "c", topics=(HEARTBEAT_TOPIC,), takeover_after=60).take(1)
        bus.publish_many([Signal(str(n), HEARTBEAT_TOPIC, {}) for n in range(HEARTBEATS.entries + 400)])
        assert len(bus.read((HEARTBEAT_TOPIC,), limit=10_000)) == HEARTBEATS.entries + 400
        # On the turn of an hour there may be a second one.
        warning = bus.read(("bus.#",))[0]
        assert (warning.topic, warning.payload) == (GROUP_BEHIND, {"group": "slow", "stream": "heartbeats"})
        seen = Failing()
        assert _consume(bus, seen, "slow", topics=(HEARTBEAT_TOPIC,), concurrency=20).drain() == HEARTBEATS.entries + 400
        bus.publish_many([Signal(f"more {n}", HEARTBEAT_TOPIC, {}) for n in range(100)])
        assert len(bus.read((HEARTBEAT_TOPIC,), limit=10_000)) <= HEARTBEATS.entries + 200

    def test_past_its_ceiling_a_stream_drops_what_a_group_needs_and_says_so(self, bus: SignalBus) -> None:
        reader = bus.join("slow", "c", topics=(HEARTBEAT_TOPIC,), takeover_after=60)
        reader.take(1)
        bus.publish_many([Signal(str(n), HEARTBEAT_TOPIC, {}) for n in range(HEARTBEATS.ceiling + 700)])
        assert len(bus.read((HEARTBEAT_TOPIC,), limit=10_000)) <= HEARTBEATS.ceiling + 200
        assert {"group": "slow", "stream": "heartbeats"} in [signal.payload for signal in bus.read((GROUP_OVERRUN,))]

    def test_what_is_in_hand_or_waits_for_a_retry_is_needed_too(self, bus: SignalBus) -> None:
        bus.publish_many([Signal(f"first {n}", HEARTBEAT_TOPIC, {}) for n in range(2)])
        reader = bus.join("g", "c", topics=(HEARTBEAT_TOPIC,), takeover_after=60)
        retried, held = reader.take(2).deliveries
        reader.retry(retried, 0)
        _consume(bus, Failing(), topics=(HEARTBEAT_TOPIC,), max_deliveries=1)
        bus.publish_many([Signal(str(n), HEARTBEAT_TOPIC, {}) for n in range(HEARTBEATS.entries + 400)])
        assert bus.read((HEARTBEAT_TOPIC,), limit=1)[0] == retried.signal
        assert reader.take(1).deliveries[0].signal == retried.signal
        reader.acknowledge([retried, held])

    # Order and concurrency

    def test_signals_of_one_key_are_handled_in_order_and_others_side_by_side(self, bus: SignalBus) -> None:
        bus.publish_many([Signal(f"{n}", "fact", {"agent": "ab"[n % 2]}) for n in range(40)])
        both = threading.Barrier(2)
        seen: dict[str, list[int]] = {"a": [], "b": []}

        def handler(signal: Signal) -> None:
            # Passed only when the two keys are in hand at the same time.
            both.wait(_DEADLINE)
            seen[signal.payload["agent"]].append(int(signal.id))

        assert _consume(bus, handler, topics=("fact",), concurrency=2, order_by="agent").drain() == 40
        assert seen == {"a": list(range(0, 40, 2)), "b": list(range(1, 40, 2))}

    def test_a_failed_signal_is_not_overtaken_by_later_ones_of_its_key(self, bus: SignalBus) -> None:
        bus.publish_many([Signal(f"{n}", "fact", {"agent": "ab"[n % 2]}) for n in range(10)])
        failing = Failing("2")
        backoff = Backoff(first=0.15, limit=0.15)
        consumer = _consume(bus, failing, topics=("fact",), order_by="agent", backoff=backoff, max_deliveries=3)
        assert consumer.drain() == 6
        assert failing.seen == ["0", "1", "2", "3", "5", "7", "9"]
        bus.publish("10", "fact", {"agent": "a"})
        assert consumer.drain() == 0
        failing.failing.clear()
        handled: list[int] = []
        eventually(lambda: handled.append(consumer.drain()) or sum(handled) == 5)
        assert failing.seen[7:] == ["2", "4", "6", "8", "10"]
        assert bus.dead_letters("g") == []

    def test_a_key_goes_on_when_its_failed_signal_is_dead(self, bus: SignalBus) -> None:
        bus.publish_many([Signal(f"{n}", "fact", {"agent": "a"}) for n in range(3)])
        failing = Failing("0")
        consumer = _consume(bus, failing, topics=("fact",), order_by="agent", backoff=AT_ONCE, max_deliveries=2)
        handled: list[int] = []
        eventually(lambda: handled.append(consumer.drain()) or sum(handled) == 2)
        assert failing.seen == ["0", "0", "1", "2"]
        assert [letter.signal.id for letter in bus.dead_letters("g")] == ["0"]

    def test_groups_say_how_far_they_are(self, bus: SignalBus) -> None:
        assert bus.groups() == []
        bus.publish_many([*_facts("a", "b", "c", "d"), Signal("beat", "agent.heartbeat", {})])
        reader = bus.join("slow", "c", topics=("fact",), takeover_after=60)
        held = reader.take(2).deliveries
        reader.retry(held[0], 1000)
        assert bus.groups() == [GroupInfo("slow", unread=2, pending=1, retrying=1, dead=0)]
        _consume(bus, Failing("a"), "all", max_deliveries=1).drain()
        assert bus.groups()[0] == GroupInfo("all", unread=0, pending=0, retrying=0, dead=1)

    def test_misuse_of_groups_is_told(self, bus: SignalBus) -> None:
        for group, options in (
            ("", {}),
            ("g", {"topics": ()}),
            ("g", {"topics": "#"}),
            ("g", {"start": "yesterday"}),
            ("g", {"max_deliveries": 0}),
            ("g", {"takeover_after": 0}),
        ):
            with pytest.raises(BusError):
                _consume(bus, Failing(), group, **options)

    # Failure

    def test_a_failure_does_not_hold_up_the_others(self, bus: SignalBus) -> None:
        bus.publish_many(_facts("bad", "good"))
        handler = Failing("bad")
        consumer = _consume(bus, handler, backoff=Backoff(first=1000, limit=1000))
        assert consumer.drain() == 1
        assert handler.seen == ["bad", "good"]
        assert bus.groups() == [GroupInfo("g", unread=0, pending=0, retrying=1, dead=0)]

    def test_a_failed_signal_comes_back_when_its_time_has_come(self, bus: SignalBus) -> None:
        bus.publish("a", "fact", {})
        handler = Failing("a")
        consumer = _consume(bus, handler, backoff=Backoff(first=0.2))
        assert consumer.drain() == 0
        assert consumer.drain() == 0
        assert handler.seen == ["a"]
        handler.failing.clear()
        eventually(lambda: consumer.drain() == 1)
        assert handler.seen == ["a", "a"]

    def test_a_hopeless_signal_becomes_a_dead_letter_with_its_error(self, bus: SignalBus) -> None:
        published = bus.publish("a", "fact", {"x": 1})
        handler = Failing("a")
        assert _consume(bus, handler, max_deliveries=3, backoff=AT_ONCE).drain() == 0
        assert handler.seen == ["a"] * 3
        (letter,) = bus.dead_letters("g")
        assert letter.signal == published
        assert letter.error == "ValueError: no way with a"
        assert letter.attempts == 3
        assert abs(datetime.now(UTC) - letter.died_at) < timedelta(minutes=1)
        assert bus.dead_letters("unknown group") == []

    def test_a_replayed_letter_is_delivered_to_its_group_alone_with_a_fresh_count(self, bus: SignalBus) -> None:
        first, second = bus.publish_many(_facts("a", "b"))
        assert first.entry_id
        assert second.entry_id
        handler = Failing("a", "b")
        _consume(bus, handler, "other", max_deliveries=1).drain()
        _consume(bus, handler, max_deliveries=1).drain()
        assert bus.replay("g", [first.entry_id]) == 1
        assert bus.replay("g", [first.entry_id]) == 0
        assert [letter.signal.id for letter in bus.dead_letters("g")] == ["b"]
        assert len(bus.dead_letters("other")) == 2
        again = Failing()
        assert _consume(bus, again, "other").drain() == 0
        assert _consume(bus, again, max_deliveries=1).drain() == 1
        assert again.seen == ["a"]

    def test_dead_letters_are_chosen_by_topic_error_and_time(self, bus: SignalBus) -> None:
        bus.publish_many([Signal("a", "one", {}), Signal("b", "other.one", {})])
        _consume(bus, Failing("a", "b"), max_deliveries=1).drain()
        letters = bus.dead_letters("g")
        assert [letter.signal.id for letter in chosen(letters, topics=("other.#",))] == ["b"]
        assert [letter.signal.id for letter in chosen(letters, error="way with a")] == ["a"]
        assert chosen(letters, since=letters[0].died_at) == letters
        assert chosen(letters, until=letters[0].died_at) == []

    def test_a_discarded_letter_is_gone(self, bus: SignalBus) -> None:
        first, second = bus.publish_many(_facts("a", "b"))
        assert first.entry_id
        _consume(bus, Failing("a", "b"), max_deliveries=1).drain()
        assert bus.discard("g", [first.entry_id]) == 1
        assert bus.discard("g", [first.entry_id]) == 0
        assert [letter.signal for letter in bus.dead_letters("g")] == [second]
        assert bus.replay("g", [first.entry_id]) == 0
        assert bus.discard("unknown group", [first.entry_id]) == 0

    def test_an_error_of_any_text_can_be_kept(self, bus: SignalBus) -> None:
        def handler(_: Signal) -> None:
            raise RuntimeError("\ud800 \x00 " + "x" * 10_000)

        bus.publish("a", "fact", {})
        _consume(bus, handler, max_deliveries=1).drain()
        (letter,) = bus.dead_letters("g")
        assert letter.error.startswith("RuntimeError: \\ud800 \x00 xxx")
        assert len(letter.error) < 2_000

    # Takeover

    def test_what_a_dead_consumer_left_goes_to_another(self, bus: SignalBus) -> None:
        bus.publish_many(_facts("a", "b"))
        dead = bus.join("g", "dead", takeover_after=0.2)
        assert len(dead.take(2).deliveries) == 2
        handler = Failing()
        assert _consume(bus, handler, takeover_after=60).drain() == 0
        heir = _consume(bus, handler, takeover_after=0.2)
        eventually(lambda: heir.drain() + len(handler.seen) >= 2)
        assert sorted(handler.seen) == ["a", "b"]
        assert bus.groups()[0].pending == 0

    def test_a_signal_that_outlives_its_consumers_becomes_a_dead_letter(self, bus: SignalBus) -> None:
        bus.publish("killer", "fact", {})
        for name in ("first", "second"):
            victim = bus.join("g", name, takeover_after=0.05)
            eventually(lambda victim=victim: len(victim.take(1).deliveries) == 1)
        handler = Failing()
        heir = _consume(bus, handler, max_deliveries=2, takeover_after=0.05)
        eventually(lambda: heir.drain() == 0 and len(bus.dead_letters("g")) == 1)
        assert handler.seen == []
        assert bus.dead_letters("g")[0].error.startswith("delivered 2 times and never answered")

    def test_a_signal_that_kills_its_consumers_does_not_take_others_along(self, bus: SignalBus) -> None:
        class Death(BaseException):
            pass

        def mortal(signal: Signal) -> None:
            if signal.id == "killer":
                raise Death
            handled.append(signal.id)

        handled: list[str] = []
        bus.publish_many([*_facts("a", "killer", "b", "c"), Signal("d", "agent.heartbeat", {}), *_facts("e")])
        deaths = 0
        while not bus.dead_letters("g"):
            try:
                _consume(bus, mortal, max_deliveries=3, takeover_after=0.1).drain()
            except Death:
                deaths += 1
        eventually(lambda: _consume(bus, mortal, takeover_after=0.1).drain() == 0 and len(handled) >= 5)
        assert deaths == 3
        assert sorted(handled) == ["a", "b", "c", "d", "e"]
        assert [letter.signal.id for letter in bus.dead_letters("g")] == ["killer"]

    def test_a_late_outcome_of_a_delivery_that_went_to_another_changes_nothing(self, bus: SignalBus) -> None:
        bus.publish("a", "fact", {})
        late, heir = (bus.join("g", name, takeover_after=0.05) for name in ("late", "heir"))
        (delivery,) = late.take(1).deliveries
        eventually(lambda: len(heir.take(1).deliveries) == 1)
        late.retry(delivery, 0)
        late.bury(delivery, "late")
        late.give_back([delivery])
        assert bus.groups() == [GroupInfo("g", unread=0, pending=1, retrying=0, dead=0)]

    def test_what_is_given_back_is_delivered_at_once_and_not_counted(self, bus: SignalBus) -> None:
        bus.publish("a", "fact", {})
        reader, other = (bus.join("g", name, takeover_after=60) for name in ("one", "other"))
        reader.give_back(reader.take(1).deliveries)
        (delivery,) = other.take(1).deliveries
        assert (delivery.signal.id, delivery.attempt) == ("a", 1)

    def test_an_outcome_told_twice_counts_once(self, bus: SignalBus) -> None:
        bus.publish_many(_facts("a", "b", "c"))
        reader = bus.join("g", "c", takeover_after=60)
        done, retried, dead = reader.take(3).deliveries
        for _ in range(2):
            reader.acknowledge([done])
            reader.retry(retried, 1000)
            reader.bury(dead, "dead")
        assert bus.groups() == [GroupInfo("g", unread=0, pending=0, retrying=1, dead=1)]

    def test_leaving_keeps_what_is_in_hand(self, bus: SignalBus) -> None:
        bus.publish("a", "fact", {})
        reader = bus.join("g", "gone", takeover_after=0.05)
        assert len(reader.take(1).deliveries) == 1
        reader.leave()
        other = bus.join("g", "other", takeover_after=0.05)
        eventually(lambda: len(other.take(1).deliveries) == 1)
