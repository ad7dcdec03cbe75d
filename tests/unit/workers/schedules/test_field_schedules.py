"""Cases from the field: an operator's zone that is ignored, or applied twice."""

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from console.commands.schedules import _as_json, table_of
from console.wording import next_briefing_line
from workers.schedules import Schedule, WallTimes

VANCOUVER = ZoneInfo("America/Vancouver")
HALF_PAST_EIGHT = dt.datetime(2026, 11, 30, 16, 30, tzinfo=dt.UTC)
"""08:30 in Vancouver."""
NEXT = "Monday 2026-11-30 08:30 (America/Vancouver)"


@pytest.fixture(params=["UTC", "America/Vancouver", "Asia/Tokyo"])
def host_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let this process run on a host with another clock."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def vancouver(found_town: Callable[..., Any]) -> Any:
    return found_town(
        mesh={"operator": {"zone": "America/Vancouver"}}, schedule={"briefing": "08:30", "watchdog_every": 200 * 24 * 3600}
    )


def test_d3_the_briefing_is_started_once_at_the_operators_time_whatever_the_hosts_clock(host_zone: str, vancouver: Any) -> None:
    begun = []
    for _ in range(2 * 24 * 12):
        vancouver.process().look()
        if len(vancouver.started("daily-briefing")) > len(begun):
            begun.append(vancouver.clock.now())
        vancouver.advance(minutes=5)

    assert vancouver.started("daily-briefing") == ["jarvis-briefing-2026-11-30", "jarvis-briefing-2026-12-01"]
    assert begun == [HALF_PAST_EIGHT, HALF_PAST_EIGHT + dt.timedelta(days=1)]


def test_d3_every_surface_shows_the_same_next_run_with_its_zone(host_zone: str, vancouver: Any) -> None:
    now = vancouver.clock.now()
    [view] = [one for one in vancouver.process().client.schedules() if one.name == "daily-briefing"]
    shown = json.loads(json.dumps(_as_json(view)))

    assert (view.next, view.zone) == (HALF_PAST_EIGHT, "America/Vancouver")
    assert (shown["next"], shown["zone"]) == ("2026-11-30T08:30:00-08:00", "America/Vancouver")
    assert f"next {NEXT}" in table_of([view], now)[0]
    assert next_briefing_line(dt.time(8, 30), VANCOUVER, now) == f"next briefing: {NEXT}"


@pytest.mark.parametrize(("day", "left_out"), [("2026-03-07", {2}), ("2026-10-31", set()), ("2026-11-30", set())])
def test_d3_a_window_across_midnight_opens_every_night(day: str, left_out: set[int]) -> None:
    begin = dt.datetime.fromisoformat(day).replace(hour=12, tzinfo=VANCOUVER)
    night = Schedule("night", "any", WallTimes.cron("0 22-5 * * *"), VANCOUVER)
    local = [slot.local for slot in night.between(begin, begin + dt.timedelta(days=1))]

    assert {at.hour for at in local} == {22, 23, 0, 1, 2, 3, 4, 5} - left_out
    assert {at.hour for at in local if at.date() == begin.date()} == {22, 23}
