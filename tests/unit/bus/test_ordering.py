"""Which delivery waits for which: the rules of the order, by a clock of its own."""

import structlog

from bus import Delivery, Signal
from bus.ordering import Order


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def delivery(number, agent="a", stream="facts"):
    return Delivery(Signal(str(number), "fact", {"agent": agent}, entry_id=f"{stream}:1000-{number}"), 1)


def ids(lanes):
    return [[delivery.signal.id for delivery in lane] for lane in lanes]


def order(order_by="agent", *, side_by_side=True, clock=None, forget_after=60):
    return Order(order_by, side_by_side=side_by_side, forget_after=forget_after, now=clock or Clock())


def test_each_key_has_a_lane_in_order_of_publication():
    batch = [delivery(10), delivery(3, "b"), delivery(9), delivery(4, "b")]
    assert ids(order().lanes(batch)) == [["3", "4"], ["9", "10"]]


def test_without_a_key_a_signal_has_a_lane_of_its_own():
    batch = [delivery(1, None), delivery(2, None), delivery(3)]
    assert ids(order().lanes(batch)) == [["1"], ["2"], ["3"]]
    assert ids(order(None).lanes([delivery(2), delivery(1)])) == [["2"], ["1"]]


def test_one_at_a_time_is_one_lane_in_order():
    batch = [delivery(10), delivery(3, "b"), delivery(9)]
    assert ids(order(side_by_side=False).lanes(batch)) == [["3", "9", "10"]]
    assert ids(order(None, side_by_side=False).lanes(batch)) == [["10", "3", "9"]]


def test_keys_that_are_equal_in_value_and_not_in_type_are_apart():
    batch = [delivery(1, 1), delivery(2, "1"), delivery(3, True), delivery(4, [1]), delivery(5, [1])]
    assert ids(order().lanes(batch)) == [["1"], ["2"], ["3"], ["4", "5"]]


def test_a_later_one_of_the_key_waits_until_the_earlier_one_is_over():
    clock = Clock()
    ordered = order(clock=clock)
    ordered.put_off(delivery(2), 10)
    assert [ordered.wait_of(delivery(number)) for number in (1, 2, 3)] == [0, 0, 10]
    assert ordered.wait_of(delivery(3, "b")) == 0
    clock.now += 20
    assert 0 < ordered.wait_of(delivery(3)) < 1
    ordered.over(delivery(2))
    assert ordered.wait_of(delivery(3)) == 0


def test_what_somebody_else_took_is_waited_for_no_longer_than_its_takeover():
    clock = Clock()
    ordered = order(clock=clock, forget_after=60)
    ordered.put_off(delivery(2), 10)
    clock.now += 71
    assert ordered.wait_of(delivery(3)) == 0


def test_the_key_may_come_from_a_function_and_one_that_fails_holds_up_nobody():
    def first_word(signal):
        return signal.payload["agent"].split()[0]

    ordered = order(first_word)
    with structlog.testing.capture_logs() as logs:
        assert ids(ordered.lanes([delivery(1, "a b"), delivery(2, 17), delivery(3, "a c")])) == [["1", "3"], ["2"]]
    assert [entry["signal_id"] for entry in logs] == ["2"]
