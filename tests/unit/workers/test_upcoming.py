"""When the next briefing is due."""

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from workers.schedules.upcoming import next_briefing

VIENNA = ZoneInfo("Europe/Vienna")


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2026-11-30T05:59:00+00:00", "2026-11-30T07:00:00+01:00"),
        ("2026-11-30T06:00:00+00:00", "2026-12-01T07:00:00+01:00"),
        ("2026-11-30T22:59:00+00:00", "2026-12-01T07:00:00+01:00"),
        ("2026-12-31T23:30:00+00:00", "2027-01-01T07:00:00+01:00"),
    ],
)
def test_it_is_today_until_its_moment_has_come(now, due):
    found = next_briefing(dt.time(7, 0), VIENNA, dt.datetime.fromisoformat(now))
    assert found == dt.datetime.fromisoformat(due)
    assert found.tzinfo is VIENNA


def test_a_time_that_the_clock_change_leaves_out_is_an_hour_later():
    now = dt.datetime(2026, 3, 28, 12, 0, tzinfo=dt.UTC)
    assert f"{next_briefing(dt.time(2, 30), VIENNA, now):%d %H:%M}" == "29 03:30"


def test_a_time_that_comes_twice_is_due_once_on_that_day():
    zone, at = VIENNA, dt.time(2, 30)
    first = next_briefing(at, zone, dt.datetime(2026, 10, 24, 12, 0, tzinfo=dt.UTC))
    assert f"{first:%d %H:%M %z}" == "25 02:30 +0200"
    assert f"{next_briefing(at, zone, first):%d %H:%M}" == "26 02:30"
