"""Groups, dead letters and publications as `jarvis signals` shows and changes them."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from bus import GroupInfo, InMemorySignalBus, Signal, SignalConsumer
from console.commands.dead_letters import Wanted, act_on, letter_line, letters_of
from console.commands.signals import draft_of, groups_table
from console.errors import ConsoleError, MisuseError

VIENNA = ZoneInfo("Europe/Vienna")
NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


@pytest.fixture
def bus():
    made = InMemorySignalBus(lambda: NOW)
    made.publish_many([Signal("a", "alert.new", {}), Signal("b", "alert.new", {}), Signal("c", "noise", {})])

    def failing(signal):
        raise ValueError(f"no\nway with {signal.id}")

    SignalConsumer(made, "alerts", failing, max_deliveries=1).drain()
    return made


def ids(letters):
    return [letter.signal.id for letter in letters]


def test_a_letter_is_one_line_with_its_reason(bus):
    assert letter_line(letters_of(bus, "alerts")[0], VIENNA) == (
        "2026-11-30 07:00:00  alert.new  a  1 tries  ValueError: no way with a"
    )


def test_letters_are_chosen_by_names_topics_errors_and_time(bus):
    letters = letters_of(bus, "alerts")
    entry = letters[1].signal.entry_id
    assert ids(Wanted.typed(["a", entry], None, None, None, VIENNA).of(letters)) == ["a", "b"]
    assert ids(Wanted.typed([], ["alert.#"], None, None, VIENNA).of(letters)) == ["a", "b"]
    assert ids(Wanted.typed([], None, "with c", None, VIENNA).of(letters)) == ["c"]
    assert ids(Wanted.typed([], None, None, "2026-11-30T07:00", VIENNA).of(letters)) == ["a", "b", "c"]
    assert Wanted.typed([], None, None, "2026-11-30T07:01", VIENNA).of(letters) == []
    with pytest.raises(MisuseError, match="pattern"):
        Wanted.typed([], ["a b"], None, None, VIENNA)


def test_letters_that_are_named_are_replayed_at_once(bus):
    assert act_on(bus, "replayed", "alerts", Wanted(("a", "nothing")), yes=False) == (1, 1)
    assert ids(bus.dead_letters("alerts")) == ["b", "c"]
    handled = []
    SignalConsumer(bus, "alerts", lambda signal: handled.append(signal.id)).drain()
    assert handled == ["a"]


@pytest.mark.parametrize("how", ["replayed", "discarded"])
def test_many_letters_are_counted_first_and_need_a_yes(bus, how):
    wanted = Wanted(topics=("alert.#",))
    with pytest.raises(ConsoleError, match=f"2 dead letters of group 'alerts' would be {how}: add --yes"):
        act_on(bus, how, "alerts", wanted, yes=False)
    assert len(bus.dead_letters("alerts")) == 3
    assert act_on(bus, how, "alerts", wanted, yes=True) == (2, 2)
    assert ids(bus.dead_letters("alerts")) == ["c"]
    assert bus.groups()[0].retrying == (2 if how == "replayed" else 0)


def test_an_unknown_group_and_a_letter_that_is_not_there_are_told(bus):
    with pytest.raises(ConsoleError, match="no group 'alrets': the groups are alerts"):
        letters_of(bus, "alrets")
    with pytest.raises(ConsoleError, match="no such dead letter"):
        act_on(bus, "discarded", "alerts", Wanted(("x",)), yes=True)


def test_groups_are_a_table_with_ages():
    found = [
        GroupInfo("alerts", 2, 1, 0, 3, oldest_unread=NOW, oldest_pending=NOW - dt.timedelta(hours=2), consumers=1),
        GroupInfo("heartbeats", 0, 0, 0, 0),
    ]
    assert groups_table(found, NOW + dt.timedelta(minutes=5)) == [
        "group       unread  oldest  in hand  oldest  retrying  dead  consumers",
        "alerts      2       5 m     1        2 h     0         3     1",
        "heartbeats  0       -       0        -       0         0     0",
    ]


def test_what_is_typed_for_publication_is_checked_as_misuse():
    assert draft_of("a", "alert.new", '{"x": 1}') == Signal("a", "alert.new", {"x": 1})
    for signal_id, topic, text in (
        ("", "t", "{}"),
        ("a", "a..b", "{}"),
        ("a", "t", "[1]"),
        ("a", "t", "{"),
        ("a", "t", '{"x":NaN}'),
    ):
        with pytest.raises(MisuseError):
            draft_of(signal_id, topic, text)
