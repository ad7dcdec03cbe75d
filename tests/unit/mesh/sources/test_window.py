"""Which facts belong to a briefing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

from mesh.sources.window import Window, briefing_window

VIENNA = ZoneInfo("Europe/Vienna")
NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


def test_todays_window_ends_now() -> None:
    window = briefing_window(dt.date(2026, 11, 30), NOW, VIENNA)

    assert (window.since, window.until) == (NOW - dt.timedelta(hours=24), NOW)


def test_another_days_window_ends_as_that_day_begins() -> None:
    window = briefing_window(dt.date(2026, 11, 20), NOW, VIENNA, hours=24)

    assert window.until == dt.datetime(2026, 11, 20, tzinfo=VIENNA)
    assert window.until - window.since == dt.timedelta(hours=24)


def test_today_is_the_operators_today() -> None:
    late = dt.datetime(2026, 11, 30, 23, 30, tzinfo=dt.UTC)

    assert briefing_window(dt.date(2026, 12, 1), late, VIENNA).until == late


def test_twenty_four_hours_are_that_long_across_a_change_of_the_clock() -> None:
    now = dt.datetime(2026, 10, 25, 7, 0, tzinfo=VIENNA)
    window = briefing_window(dt.date(2026, 10, 25), now, VIENNA)

    assert now.astimezone(dt.UTC) - window.since == dt.timedelta(hours=24)


def test_the_hour_that_happens_twice_belongs_to_its_day(window: Callable[..., Window]) -> None:
    sunday = window("2026-10-25")
    second_time = dt.datetime(2026, 10, 25, 2, 30, tzinfo=VIENNA, fold=1)

    assert sunday.overlaps_day(second_time, second_time)


def test_an_event_that_ends_at_midnight_is_not_on_the_next_day(window: Callable[..., Window]) -> None:
    day = window("2026-11-30")
    evening = dt.datetime(2026, 11, 29, 22, 0, tzinfo=VIENNA)

    assert not day.overlaps_day(evening, dt.datetime(2026, 11, 30, 0, 0, tzinfo=VIENNA))
    assert day.overlaps_day(evening, dt.datetime(2026, 11, 30, 0, 1, tzinfo=VIENNA))
