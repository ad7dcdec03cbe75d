"""All sources at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from mesh.sources.item import Item, Kind, Reading
from mesh.sources.reader import read_all
from mesh.sources.window import Window

Windows = Callable[..., Window]


class Fixed:
    """A source that gives one item, after `before` has come back."""

    def __init__(self, name: str, before: Callable[[], object] = lambda: None) -> None:
        self.name = name
        self._before = before

    def read(self, window: Window) -> Reading:
        self._before()
        return Reading(items=(Item(Kind.NEWS, self.name, self.name, self.name),))


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """An event that happens only when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_nothing_to_read_reads_nothing(window: Windows) -> None:
    assert read_all([], window()) == Reading()


def test_the_order_is_that_of_the_list_whoever_answers_first(window: Windows) -> None:
    second_done = threading.Event()
    first = Fixed("first", lambda: second_done.wait(10))
    second = Fixed("second", second_done.set)

    assert [item.text for item in read_all([first, second], window()).items] == ["first", "second"]


def test_a_source_that_breaks_its_promise_is_a_gap(window: Windows) -> None:
    def fail() -> None:
        raise RuntimeError("out of\nluck")

    reading = read_all([Fixed("good"), Fixed("bad", fail)], window())

    assert [item.text for item in reading.items] == ["good"]
    assert [(gap.source, gap.reason) for gap in reading.gaps] == [("bad", "failed with RuntimeError: out of luck")]


def test_a_source_that_does_not_come_back_is_a_gap(window: Windows, never: threading.Event) -> None:
    reading = read_all([Fixed("hangs", lambda: never.wait(10)), Fixed("good")], window(), seconds=0.2)

    assert [item.text for item in reading.items] == ["good"]
    assert [(gap.source, gap.reason) for gap in reading.gaps] == [("hangs", "not read within 0.2 s")]


def test_no_more_sources_than_allowed_are_read_at_once(window: Windows) -> None:
    running: list[int] = []
    most: list[int] = []

    def enter() -> None:
        running.append(1)
        most.append(len(running))
        running.pop()

    read_all([Fixed(str(number), enter) for number in range(20)], window(), at_once=2)

    assert len(most) == 20
    assert max(most) <= 2
