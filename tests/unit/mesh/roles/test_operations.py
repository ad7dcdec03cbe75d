"""What the operations role writes about calendars, services and the mesh."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from mesh.roles.document import render
from mesh.roles.operations import operations_sections
from mesh.settings import MeshConfig
from mesh.sources.item import Item, Kind, Reading, Severity
from mesh.sources.window import Window

Config = Callable[..., MeshConfig]
CALENDARS = [{"name": "Work", "path": "work.ics"}]
AT_SIX = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


def event(text: str, start: dt.datetime | dt.date, end: dt.datetime | dt.date) -> Item:
    return Item(Kind.EVENT, text, "Work", text, at=start, until=end)


def at(day: int, hour: int, minute: int = 0) -> dt.datetime:
    return dt.datetime(2026, 11, day, hour, minute, tzinfo=dt.UTC)


def written(reading: Reading, window: Window, config: MeshConfig) -> str:
    return render(operations_sections(reading, window, config))


def test_the_calendar_is_in_the_operators_hours_with_all_day_events_first(window: Window, config: Config) -> None:
    reading = Reading(
        items=(
            event("Board", at(30, 14), at(30, 15, 30)),
            event("Reminder", at(30, 8), at(30, 8)),
            event("Fair", dt.date(2026, 11, 29), dt.date(2026, 12, 3)),
            event("Night shift", at(29, 21), at(30, 3)),
            event("Holiday", dt.date(2026, 11, 30), dt.date(2026, 12, 1)),
        )
    )

    assert written(reading, window, config(calendars=CALENDARS)) == (
        "## Today's calendar\n\n"
        "- **all day, until Wed 2 Dec** Fair · *Work, Mon 30 Nov*\n"
        "- **all day** Holiday · *Work, Mon 30 Nov*\n"
        "- **Sun 29 Nov 22:00 to 04:00** Night shift · *Work, Mon 30 Nov*\n"
        "- **09:00** Reminder · *Work, Mon 30 Nov*\n"
        "- **15:00 to 16:30** Board · *Work, Mon 30 Nov*\n"
    )


def test_what_is_down_needs_attention_and_what_is_up_is_listed(window: Window, config: Config) -> None:
    reading = Reading(
        items=(
            Item(Kind.CHECK, "Shop: answered in 12 ms", "check of shop.example", "Shop", at=AT_SIX),
            Item(Kind.CHECK, "Till: refused", "check of till:1", "Till", at=AT_SIX, severity=Severity.CRITICAL),
            Item(Kind.MESH, "Agent x is silent", "mesh", "x", at=AT_SIX, severity=Severity.CRITICAL),
            Item(Kind.MESH, "The mesh: all well", "mesh", "summary", at=AT_SIX),
        )
    )

    assert written(reading, window, config(checks=[{"name": "Till", "tcp": "till:1"}])) == (
        "## Needs attention\n\n"
        "- **Down** Till: refused · *check of till:1, Mon 30 Nov 07:00*\n"
        "- Agent x is silent · *mesh, Mon 30 Nov 07:00*\n\n"
        "## Services\n\n"
        "- **Up** Shop: answered in 12 ms · *check of shop.example, Mon 30 Nov 07:00*\n"
        "- The mesh: all well · *mesh, Mon 30 Nov 07:00*\n"
    )


def test_an_empty_day_says_so(window: Window, config: Config) -> None:
    assert "Nothing in the calendar on Mon 30 Nov." in written(Reading(), window, config(calendars=CALENDARS))


def test_without_anything_to_read_the_text_says_how_that_came(window: Window, config: Config) -> None:
    assert "jarvis.toml names no calendars and no service checks" in written(Reading(), window, config())
