"""Slots are taken all together or not at all, end with their lease, and are counted over all holders."""

from collections.abc import Callable

import fakeredis
import pytest

from workers.limits import InMemorySlots, RedisSlots, Slots

ONE, TWO = {"a": 1}, {"a": 1, "b": 2}


class Bench:
    """Slots, and a way to let time pass for them."""

    def __init__(self, slots: Slots, pass_time: Callable[[float], None]) -> None:
        self.slots = slots
        self.pass_time = pass_time


def in_memory() -> Bench:
    moment = [100.0]

    def pass_time(seconds: float) -> None:
        moment[0] += seconds

    return Bench(InMemorySlots(lambda: moment[0]), pass_time)


def in_redis() -> Bench:
    client = fakeredis.FakeRedis()
    # The server's clock cannot be moved: leases are, which is the same.
    return Bench(
        RedisSlots(client, "{t}:"),
        lambda seconds: [
            client.zincrby(key, -seconds * 1000, holder) for key in client.scan_iter() for holder in client.zrange(key, 0, -1)
        ],
    )


@pytest.fixture(params=[in_memory, in_redis])
def bench(request: pytest.FixtureRequest) -> Bench:
    return request.param()


def test_no_more_slots_are_given_than_there_are(bench) -> None:
    taken = [bench.slots.take({"a": 2}, holder, 30) for holder in ("x", "y", "z")]
    assert taken[:2] == [None, None]
    assert taken[2] == pytest.approx(30, abs=1)


def test_whoever_holds_a_slot_may_take_it_again(bench) -> None:
    assert [bench.slots.take(ONE, "x", 30) for _ in range(3)] == [None] * 3


def test_a_slot_that_is_given_back_is_free(bench) -> None:
    bench.slots.take(ONE, "x", 30)
    bench.slots.give_back(ONE, "x")
    assert bench.slots.take(ONE, "y", 30) is None


def test_the_executions_of_a_run_share_its_slot(bench) -> None:
    bench.slots.take({"a": 2}, "w/r/dead", 30)
    bench.slots.take({"a": 2}, "w/other/1", 30)
    assert bench.slots.take({"a": 2}, "w/r/2", 30) is None
    assert bench.slots.take({"a": 2}, "w/third/1", 30) is not None


def test_a_slot_is_free_when_each_execution_of_its_run_has_given_it_back(bench) -> None:
    bench.slots.take(ONE, "w/r/1", 30)
    bench.slots.take(ONE, "w/r/twice-hinted", 30)
    bench.slots.give_back(ONE, "w/r/twice-hinted")
    assert bench.slots.take(ONE, "w/other/1", 30) is not None
    bench.slots.give_back(ONE, "w/r/1")
    assert bench.slots.take(ONE, "w/other/1", 30) is None


def test_giving_back_what_one_has_not_changes_nothing(bench) -> None:
    bench.slots.take(ONE, "x", 30)
    bench.slots.give_back(ONE, "y")
    assert bench.slots.take(ONE, "y", 30) is not None


def test_a_slot_of_a_holder_that_died_is_free_when_its_lease_ends(bench) -> None:
    bench.slots.take(ONE, "x", 30)
    bench.pass_time(29)
    assert bench.slots.take(ONE, "y", 30) == pytest.approx(1, abs=0.5)
    bench.pass_time(2)
    assert bench.slots.take(ONE, "y", 30) is None


def test_taking_again_extends_the_lease(bench) -> None:
    bench.slots.take(ONE, "x", 30)
    bench.pass_time(20)
    bench.slots.take(ONE, "x", 30)
    bench.pass_time(20)
    assert bench.slots.take(ONE, "y", 30) is not None


def test_of_several_limits_all_are_taken_or_none(bench) -> None:
    bench.slots.take({"b": 1}, "x", 30)
    assert bench.slots.take({"a": 1, "b": 1}, "y", 30) is not None
    assert bench.slots.take(ONE, "z", 30) is None


def test_the_wait_is_the_longest_of_the_full_limits(bench) -> None:
    bench.slots.take({"a": 1}, "x", 10)
    bench.slots.take({"b": 1}, "x", 20)
    assert bench.slots.take({"a": 1, "b": 1}, "y", 30) == pytest.approx(20, abs=1)


def test_a_limit_of_none_gives_no_slot(bench) -> None:
    assert bench.slots.take({"a": 0}, "x", 30) == 0
