"""Which facts `jarvis signals tail` shows, and how."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from bus import InMemorySignalBus, Signal
from console.commands.signals import LINES, choose, latest, signal_line
from console.errors import MisuseError


@pytest.fixture
def bus():
    made = InMemorySignalBus()
    for number in range(LINES + 5):
        made.publish(f"beat/{number}", "agent.heartbeat", {"agent": "research"})
        made.publish(f"fact/{number}", "research.completed", {"number": number})
    return made


def test_the_last_facts_are_shown_and_heartbeats_are_not(bus):
    found, _ = latest(bus, choose([], None))
    assert [signal.id for signal in found] == [f"fact/{number}" for number in range(5, LINES + 5)]


def test_heartbeats_are_shown_when_their_topic_is_asked_for(bus):
    found, _ = latest(bus, choose(["agent.#"], None))
    assert {signal.topic for signal in found} == {"agent.heartbeat"}


def test_since_a_moment_all_facts_are_shown(bus):
    found, _ = latest(bus, choose([], dt.datetime(2000, 1, 1, tzinfo=dt.UTC)))
    assert len(found) == LINES + 5
    assert latest(bus, choose([], dt.datetime(2900, 1, 1, tzinfo=dt.UTC)))[0] == []


def test_the_position_is_behind_what_was_shown(bus):
    _, position = latest(bus, choose([], None))
    bus.publish("late", "briefing.ready", {})
    assert [signal.id for signal in bus.read(("#",), position)] == ["late"]


def test_an_empty_bus_shows_nothing():
    assert latest(InMemorySignalBus(), choose([], None))[0] == []


def test_a_malformed_pattern_is_misuse():
    with pytest.raises(MisuseError, match="is not a topic pattern"):
        choose(["a b"], None)


def test_a_fact_is_one_line():
    published = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)
    signal = Signal("day/briefing.ready", "briefing.ready", {"note": "Grüße"}, published, "facts:1-0")
    assert signal_line(signal, ZoneInfo("Europe/Vienna")) == (
        '2026-11-30 07:00:00  briefing.ready  day/briefing.ready  {"note": "Grüße"}'
    )
