"""Slots, by every zone's clock and through every change of clocks."""

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from workers.schedules import Every, Schedule, Slot, WallTimes
from workers.schedules.rules import moments_of

UTC = dt.UTC
DAY = dt.timedelta(days=1)
SECOND = dt.timedelta(seconds=1)
BERLIN = ZoneInfo("Europe/Berlin")

zones = st.sampled_from(sorted(available_timezones() - {"localtime", "posixrules"})).map(ZoneInfo)
EPOCH = dt.datetime(1995, 1, 1, tzinfo=UTC)
moments = st.timedeltas(dt.timedelta(), 41 * 365 * DAY).map(lambda passed: EPOCH + passed)
times = st.times().map(lambda time: time.replace(microsecond=0))
crons = st.tuples(
    st.sampled_from(["0", "30", "*/15", "*", "5,50"]),
    st.sampled_from(["*", "2", "*/2", "0-3", "23", "0-23"]),
    st.sampled_from(["*", "29", "1-7"]),
    st.sampled_from(["*", "3,10", "feb"]),
    st.sampled_from(["*", "sun", "mon-fri"]),
).map(" ".join)
rules = st.one_of(times.map(WallTimes.daily), crons.map(WallTimes.cron), st.integers(1, 200_000).map(Every))


@st.composite
def changes_of_clocks(draw: st.DrawFn) -> tuple[ZoneInfo, dt.datetime]:
    """A zone and a moment shortly before its clocks change."""
    zone, year = draw(zones), draw(st.integers(1995, 2035))
    days = [dt.datetime(year, 1, 1, tzinfo=UTC) + number * DAY for number in range(366)]
    changes = [day for day in days if day.astimezone(zone).utcoffset() != (day + DAY).astimezone(zone).utcoffset()]
    assume(changes)
    return zone, draw(st.sampled_from(changes))


def schedule(rule: Every | WallTimes, zone: ZoneInfo = BERLIN) -> Schedule:
    return Schedule("any", "any", rule, zone)


def shown(at: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    return at.astimezone(zone).replace(tzinfo=None)


def shown_in(slots: list[Slot], zone: ZoneInfo) -> list[str]:
    return [f"{slot.at.astimezone(zone):%d %H:%M %z}" for slot in slots]


def between(rule: Every | WallTimes, zone: str, first: str, last: str) -> list[str]:
    """The slots from one local day to another."""
    known = ZoneInfo(zone)
    begin = dt.datetime.fromisoformat(first).replace(tzinfo=known).astimezone(UTC) - dt.timedelta(microseconds=1)
    end = dt.datetime.fromisoformat(last).replace(tzinfo=known).astimezone(UTC) + DAY
    slots = [slot for slot in schedule(rule, known).between(begin, end) if slot.local.date() <= dt.date.fromisoformat(last)]
    return shown_in(slots, known)


# --- the cases from the field -------------------------------------------------------------------------------------------------


def test_d4_a_daily_time_that_is_left_out_happens_once_that_day_and_as_much_later() -> None:
    rule = WallTimes.daily(dt.time(2, 30))
    assert between(rule, "Europe/Berlin", "2026-03-28", "2026-03-30") == ["28 02:30 +0100", "29 03:30 +0200", "30 02:30 +0200"]


def test_d4_a_daily_time_that_comes_twice_happens_once_that_day() -> None:
    rule = WallTimes.daily(dt.time(2, 30))
    assert between(rule, "Europe/Berlin", "2026-10-24", "2026-10-26") == ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_d4_a_daily_time_beside_the_change_is_untouched(day: str) -> None:
    [slot] = between(WallTimes.daily(dt.time(7, 0)), "Europe/Berlin", day, day)
    assert slot[3:8] == "07:00"


@pytest.mark.parametrize("expression", ["0 * * * *", "0 0-23 * * *", "0 */1 * * *"])
@pytest.mark.parametrize(("day", "hours"), [("2026-03-08", 23), ("2026-06-01", 24), ("2026-11-01", 25)])
def test_d4_an_hourly_schedule_has_as_many_runs_as_the_day_has_hours(expression: str, day: str, hours: int) -> None:
    slots = between(WallTimes.cron(expression), "US/Pacific", day, day)
    assert len(slots) == hours
    if hours == 25:
        assert slots[1:3] == ["01 01:00 -0700", "01 01:00 -0800"]


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_d4_a_sweep_each_minute_is_not_touched(day: str, hours: int) -> None:
    begin = dt.datetime.fromisoformat(day).replace(tzinfo=BERLIN).astimezone(UTC)
    slots = list(schedule(Every(60)).between(begin - dt.timedelta(seconds=1), begin + dt.timedelta(hours=hours) - SECOND))
    assert len(slots) == hours * 60
    assert {(later.at - earlier.at).total_seconds() for earlier, later in pairwise(slots)} == {60}


def test_both_passes_have_keys_of_their_own() -> None:
    begin = dt.datetime(2026, 10, 24, 23, 30, tzinfo=UTC)
    slots = list(schedule(WallTimes.cron("0 * * * *")).between(begin, begin + dt.timedelta(hours=2)))
    assert [(slot.local.hour, slot.key) for slot in slots] == [(2, "20261025T000000Z"), (2, "20261025T010000Z")]


def test_where_midnight_is_left_out_the_day_still_has_its_run() -> None:
    assert between(WallTimes.daily(dt.time(0, 0)), "Africa/Cairo", "2026-04-24", "2026-04-24") == ["24 01:00 +0300"]


def test_an_hour_that_is_only_half_left_out_keeps_its_run() -> None:
    assert between(WallTimes.cron("0 * * * *"), "Australia/Lord_Howe", "2026-10-04", "2026-10-04")[1:4] == [
        "04 01:00 +1030",
        "04 02:30 +1100",
        "04 03:00 +1100",
    ]


def test_a_day_that_a_zone_left_out_has_no_run_of_its_own() -> None:
    begin = dt.datetime(2011, 12, 29, 12, tzinfo=UTC)
    slots = list(schedule(WallTimes.daily(dt.time(7, 0)), ZoneInfo("Pacific/Apia")).between(begin, begin + 3 * DAY))
    assert [str(slot.local.date()) for slot in slots] == ["2011-12-29", "2011-12-31", "2012-01-01"]


def test_a_rare_day_is_found_far_away_and_one_that_never_comes_is_not() -> None:
    after = dt.datetime(2096, 3, 1, tzinfo=UTC)
    leap, never = (schedule(WallTimes.cron(expression)) for expression in ("0 0 29 2 *", "0 0 30 2 *"))
    found = leap.next(after)
    assert found is not None
    assert found.local.isoformat() == "2104-02-29T00:00:00"
    assert (never.next(after), never.previous(after)) == (None, None)


def test_an_interval_knows_no_clocks() -> None:
    slots = between(Every(3600), "Europe/Berlin", "2026-10-25", "2026-10-25")
    assert len(slots) == 25
    assert (Every(60).words, Every(7200).words, Every(90).words) == ("every minute", "every 2 hours", "every 90 seconds")


# --- for all zones and years --------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(changes_of_clocks(), times)
def test_a_daily_schedule_runs_once_for_each_local_date(change: tuple[ZoneInfo, dt.datetime], time: dt.time) -> None:
    zone, begin = change
    slots = list(schedule(WallTimes.daily(time), zone).between(begin - 3 * DAY, begin + 4 * DAY))

    dates = [slot.local.date() for slot in slots]
    assert dates == sorted(set(dates))
    for earlier, later in pairwise(dates):
        missing = [earlier + number * DAY for number in range(1, (later - earlier).days)]
        assert not any(exists(dt.datetime.combine(date, time), zone) for date in missing)
    for slot in slots:
        assert slot.local.time() == time
        assert shown(slot.at, zone) == slot.local or (shown(slot.at, zone) > slot.local and not exists(slot.local, zone))


@settings(deadline=None)
@given(changes_of_clocks(), st.integers(0, 59))
def test_an_hourly_schedule_runs_whenever_clocks_show_its_minute(change: tuple[ZoneInfo, dt.datetime], minute: int) -> None:
    zone, begin = change
    assume(whole_minutes(zone, begin))
    until = begin + 2 * DAY
    slots = {slot.at: slot for slot in schedule(WallTimes.cron(f"{minute} * * * *"), zone).between(begin, until)}

    every_minute = [begin + dt.timedelta(minutes=number) for number in range(1, 2 * 24 * 60 + 1)]
    wanted = {at for at in every_minute if shown(at, zone).minute == minute}

    assert wanted <= slots.keys()
    assert all(not exists(slots[at].local, zone) for at in slots.keys() - wanted)


@given(rules, zones, moments)
@settings(max_examples=200, deadline=None)
def test_next_and_previous_meet(rule: Every | WallTimes, zone: ZoneInfo, at: dt.datetime) -> None:
    any_schedule = schedule(rule, zone)
    following, passed = any_schedule.next(at), any_schedule.previous(at)
    assert following is not None
    assert passed is not None
    assert passed.at <= at < following.at
    assert any_schedule.next(passed.at) == following
    assert any_schedule.previous(following.at - dt.timedelta(microseconds=1)) == passed
    assert any_schedule.previous(following.at) == following


@given(rules, changes_of_clocks())
@settings(max_examples=200, deadline=None)
def test_backwards_finds_what_forwards_finds(rule: Every | WallTimes, change: tuple[ZoneInfo, dt.datetime]) -> None:
    zone, begin = change
    any_schedule = schedule(rule if not isinstance(rule, Every) or rule.seconds > 600 else Every(600), zone)
    slots = list(any_schedule.between(begin, begin + DAY))
    assert slots == list(any_schedule.backwards(begin + DAY, begin))[::-1]
    assert [slot.at for slot in slots] == sorted({slot.at for slot in slots})
    assert len({slot.key for slot in slots}) == len(slots)


def exists(local: dt.datetime, zone: ZoneInfo) -> bool:
    return any(shown(at, zone) == local for at in moments_of(local, zone))


def whole_minutes(zone: ZoneInfo, at: dt.datetime) -> bool:
    """Whether the zone's clocks show whole minutes when those of UTC do."""
    return all(shown(at + number * DAY, zone).second == at.second for number in range(3)) and at.second == at.microsecond == 0
