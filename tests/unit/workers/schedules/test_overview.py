"""What is said about schedules: the last slot and the next one, also while nobody runs them."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

from console.commands.schedules import table_of
from workers.schedules.overview import LastOccurrence, ScheduleView, overview


def shown(town: Any, name: str = "hourly") -> ScheduleView:
    return next(view for view in overview(town.process().runtime, town.clock.now()) if view.name == name)


def test_before_the_first_look_there_is_a_next_slot_and_no_last_one(town: Any) -> None:
    view = shown(town)

    assert (view.last, str(view.next), view.zone) == (None, "2026-11-30 07:00:00+01:00", "Europe/Vienna")
    assert (view.workflow, view.rule, view.after_downtime) == ("report", "cron 0 * * * *", "latest")


def test_the_last_slot_is_shown_with_how_its_run_went(town: Any) -> None:
    process = town.process()
    process.look()
    town.advance(minutes=30)
    process.look()
    pending = shown(town)
    process.work("hourly-20261130T060000Z")
    finished = shown(town)
    town.kept.delete_if_unchanged("hourly-20261130T060000Z", "__control", town.kept.get("hourly-20261130T060000Z", "__control"))

    assert [view.last.outcome for view in (pending, finished, shown(town))] == ["pending", "completed", "not kept"]
    assert (str(finished.last.slot), finished.last.late) == ("2026-11-30 07:00:00+01:00", False)
    assert str(finished.next) == "2026-11-30 08:00:00+01:00"


def test_a_late_run_is_shown_as_late(town: Any) -> None:
    town.process().look()
    town.advance(hours=3)
    town.process().look()

    assert shown(town).last.late
    assert shown(town, "daily-briefing").last.late


def test_an_interval_that_is_new_passes_once_in_full(found_town: Any) -> None:
    town = found_town(schedule={"watchdog_every": 3600})
    town.advance(minutes=10)
    town.process().look()

    assert str(shown(town, "watchdog").next) == "2026-11-30 08:00:00+01:00"


def test_nothing_is_written_by_looking_at_it(town: Any) -> None:
    runtime = town.process().runtime
    overview(runtime, town.clock.now())

    assert town.kept.load("__schedule:hourly") == {}


def test_the_lines_are_aligned_and_say_when_in_words() -> None:
    utc, vienna = dt.UTC, dt.timezone(dt.timedelta(hours=1))
    now = dt.datetime(2026, 11, 30, 5, 30, tzinfo=utc)
    last = LastOccurrence(dt.datetime(2026, 11, 29, 7, tzinfo=vienna), "a", late=True, outcome="completed")
    views = [
        ScheduleView("daily-briefing", "w", "every day at 07:00", "Europe/Vienna", "latest", last, now.astimezone(vienna)),
        ScheduleView("till", "w", "every minute", "UTC", "skip", None, now + dt.timedelta(seconds=90)),
    ]

    daily, every = (line.split("  next ") for line in table_of(views, now))
    assert daily == [
        "daily-briefing  every day at 07:00",
        "Monday 2026-11-30 06:30 (Europe/Vienna), in 0 s  last 2026-11-29 07:00 completed, late",
    ]
    assert every == [
        "till            every minute      ",
        "Monday 2026-11-30 05:31:30 (UTC), in 1 m         has not run yet",
    ]


def test_a_time_that_comes_twice_is_shown_with_its_offset() -> None:
    at = dt.datetime(2026, 10, 25, 1, 0, tzinfo=dt.UTC).astimezone(ZoneInfo("Europe/Vienna"))
    view = ScheduleView("a", "w", "cron 0 * * * *", "Europe/Vienna", "latest", None, at)

    assert "next Sunday 2026-10-25 02:00 +0100 (Europe/Vienna), in 1 h" in table_of([view], at - dt.timedelta(hours=1))[0]
