"""What a cron expression means, and what is said of one that means nothing."""

import datetime as dt
import re

import pytest
from celery.schedules import crontab_parser
from hypothesis import given
from hypothesis import strategies as st

from workers.schedules.cron import parse_cron

MONDAY, SUNDAY = dt.date(2026, 11, 30), dt.date(2026, 11, 29)


@st.composite
def minute_fields(draw: st.DrawFn) -> str:
    numbers = st.integers(0, 59)
    spans = st.one_of(st.just("*"), numbers.map(str), st.tuples(numbers, numbers).map(lambda pair: f"{pair[0]}-{pair[1]}"))
    stepped = st.tuples(spans.filter(lambda span: not span.isdigit()), st.integers(1, 59)).map(
        lambda part: f"{part[0]}/{part[1]}"
    )
    return ",".join(draw(st.lists(st.one_of(spans, stepped), min_size=1, max_size=4)))


@given(minute_fields())
def test_a_field_means_what_it_means_to_celery(field: str) -> None:
    minutes = {time.minute for time in parse_cron(f"{field} 0 * * *").times}
    assert minutes == crontab_parser(60).parse(field)


@pytest.mark.parametrize("weekday", ["1", "mon", "MON", "mon-fri", "0-1", "7,1", "*/1", "1/7"])
def test_a_weekday_may_be_named_and_counts_from_sunday(weekday: str) -> None:
    days = parse_cron(f"0 7 * * {weekday}").days
    assert days.match(MONDAY)


@pytest.mark.parametrize("weekday", ["fri-mon", "sat-2", "6-1"])
def test_days_of_the_week_may_go_over_its_end(weekday: str) -> None:
    days = parse_cron(f"0 7 * * {weekday}").days
    assert days.match(SUNDAY)
    assert days.match(MONDAY)
    assert not days.match(dt.date(2026, 12, 2))


def test_months_and_days_may_go_over_their_end() -> None:
    days = parse_cron("0 7 30-2 nov-jan *").days
    assert sorted(days.days) == [1, 2, 30, 31]
    assert sorted(days.months) == [1, 11, 12]


@pytest.mark.parametrize("weekday", ["0", "7", "sun", "sat-sun", "fri-7", "*/7"])
def test_sunday_has_two_numbers(weekday: str) -> None:
    days = parse_cron(f"0 7 * * {weekday}").days
    assert days.match(SUNDAY)
    assert not days.match(MONDAY)


def test_two_restricted_kinds_of_day_are_alternatives_and_a_star_restricts_nothing() -> None:
    either, both = parse_cron("0 7 1 * mon").days, parse_cron("0 7 */2 * mon").days
    assert (either.match(MONDAY), either.match(dt.date(2026, 12, 1)), either.match(dt.date(2026, 12, 2))) == (True, True, False)
    assert (both.match(MONDAY), both.match(dt.date(2026, 12, 7)), both.match(dt.date(2026, 12, 1))) == (False, True, False)


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("0 7 * *", "'0 7 * *' has 4 fields: write minute, hour, day, month and weekday"),
        ("60 7 * * *", "'60' is no minute: use 0 to 59"),
        ("0 -1 * * *", "'' is no hour: use 0 to 23"),
        ("0 7 0 * *", "'0' is no day: use 1 to 31"),
        ("0 7 * smarch *", "'smarch' is no month: use 1 to 12"),
        ("*/0 7 * * *", "the minute '*/0' has no step that counts: write it such as */15"),
        ("*/ 7 * * *", "the minute '*/' has no step that counts"),
        ("0,,5 7 * * *", "'' is no minute"),
        ("² 7 * * *", "'²' is no minute"),
    ],
)
def test_a_mistake_is_named_with_its_field(expression: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)) as refused:
        parse_cron(expression)
    assert str(refused.value).startswith(complaint)
    assert "\n" not in str(refused.value)
