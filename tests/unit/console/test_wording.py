"""Times, dates and paths as people write and read them."""

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from console.errors import MisuseError
from console.wording import age, moment, parse_date, parse_since, shown_path

VIENNA = ZoneInfo("Europe/Vienna")
NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", ["", "today", "2026-13-01", "2026-02-30", "30.11.2026", "2026-11-30T07:00"])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(MisuseError, match="is not a date"):
        parse_date(text)


def test_a_date_is_understood():
    assert parse_date("2026-11-30") == dt.date(2026, 11, 30)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("90s", NOW - dt.timedelta(seconds=90)),
        ("30m", NOW - dt.timedelta(minutes=30)),
        ("2h", NOW - dt.timedelta(hours=2)),
        ("1d", NOW - dt.timedelta(days=1)),
        ("2026-11-30", dt.datetime(2026, 11, 30, tzinfo=VIENNA)),
        ("2026-11-30T07:00", dt.datetime(2026, 11, 30, 7, 0, tzinfo=VIENNA)),
        ("2026-11-30T07:00+00:00", dt.datetime(2026, 11, 30, 7, 0, tzinfo=dt.UTC)),
    ],
)
def test_a_beginning_is_an_age_or_a_time_on_the_operators_clock(text, since):
    assert parse_since(text, NOW, VIENNA) == since


@pytest.mark.parametrize("text", ["", "h", "-2h", "2.5h", "²h", "2w", "99999999999999d", "noon"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(MisuseError, match="is no time"):
        parse_since(text, NOW, VIENNA)


@pytest.mark.parametrize(("seconds", "words"), [(-3, "0 s"), (59.9, "59 s"), (60, "1 m"), (7300, "2 h"), (200000, "2 d")])
def test_an_age_is_in_the_largest_unit_that_fits(seconds, words):
    assert age(seconds) == words


def test_a_moment_is_on_the_operators_clock():
    assert moment(NOW, VIENNA) == "2026-11-30 07:00:00"


def test_a_path_is_as_short_as_it_can_be_typed():
    assert shown_path(Path("/here/a/b"), Path("/here")) == "a/b"
    assert shown_path(Path("/there/b"), Path("/here")) == "/there/b"
