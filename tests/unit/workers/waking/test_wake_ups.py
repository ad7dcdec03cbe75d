"""Wake-ups within a process and over a server: who waits for a run is woken for that run, and only while it waits."""

from collections.abc import Callable

import fakeredis
import pytest

from workers.waking import InMemoryWakeUps, RedisWakeUps, WakeUps
from workers.waking.ears import Ears


@pytest.fixture
def wake_ups() -> WakeUps:
    """Wake-ups of one process."""
    return InMemoryWakeUps()


@pytest.fixture
def woken() -> list[str]:
    """Who was woken."""
    return []


def note(woken: list[str], name: str) -> Callable[[], None]:
    return lambda: woken.append(name)


def test_all_that_wait_for_a_run_are_woken_and_nobody_else(wake_ups: WakeUps, woken: list[str]) -> None:
    with (
        wake_ups.listening("order", "1", note(woken, "one")),
        wake_ups.listening("order", "1", note(woken, "another")),
        wake_ups.listening("order", "2", note(woken, "a stranger")),
    ):
        wake_ups.tell("order", "1")

    assert woken == ["one", "another"]


def test_who_waits_no_more_is_not_woken(wake_ups: WakeUps, woken: list[str]) -> None:
    with wake_ups.listening("order", "1", note(woken, "stays")):
        with wake_ups.listening("order", "1", note(woken, "leaves")):
            pass
        wake_ups.tell("order", "1")

    assert woken == ["stays"]


def test_nothing_is_kept_of_those_that_have_left() -> None:
    ears = Ears()
    ears.add("order/1", print)
    ears.remove("order/1", print)
    ears.wake("order/1")

    assert not ears


def test_a_stream_is_given_its_expiry_now_and_then_and_not_with_each_word() -> None:
    server = fakeredis.FakeRedis()
    wake_ups = RedisWakeUps(server)
    wake_ups.tell("order", "1")
    server.persist("jarvis:settled")
    wake_ups.tell("order", "2")

    assert [fields[b"r"] for _, fields in server.xrange("jarvis:settled")] == [b"order/1", b"order/2"]
    assert server.ttl("jarvis:settled") == -1
