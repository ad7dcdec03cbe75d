"""Calendars as programs really write them (B1, B2, B3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from mesh.sources.calendars import read_calendar
from mesh.sources.item import Item
from mesh.sources.window import Window

Windows = Callable[..., Window]
Calendars = Callable[..., bytes]


def days_shown(content: bytes, window: Windows, first: str, count: int, zone: str) -> list[str]:
    """Return the days, of `count` from `first` on, on which the calendar shows anything."""
    days = [(dt.date.fromisoformat(first) + dt.timedelta(days=number)).isoformat() for number in range(count)]
    return [day for day in days if read_calendar("calendar", content, window(day, zone)).items]


def hours(items: tuple[Item, ...]) -> list[str]:
    return [f"{item.at:%H:%M} {item.text}" for item in items]


def test_days_excluded_by_date_are_excluded_from_a_timed_series(window: Windows, ics: Calendars) -> None:
    weekly = ics(
        "DTSTART;TZID=Europe/Vienna:20260301T100000\nRRULE:FREQ=WEEKLY\nEXDATE;VALUE=DATE:20260308,20260315\nSUMMARY:Walk"
    )

    assert days_shown(weekly, window, "2026-03-01", 30, "Europe/Vienna") == ["2026-03-01", "2026-03-22", "2026-03-29"]


@pytest.mark.parametrize("zone", ["Europe/Vienna", "America/Vancouver", "Pacific/Auckland", "Pacific/Kiritimati"])
@pytest.mark.parametrize("excluded", ["EXDATE:20260302T000000", "EXDATE;VALUE=DATE:20260302", "EXDATE:20260302T000000Z"])
def test_all_day_events_keep_their_days_in_every_zone(window: Windows, ics: Calendars, zone: str, excluded: str) -> None:
    daily = ics(f"DTSTART;VALUE=DATE:20260301\nRRULE:FREQ=DAILY;COUNT=4\n{excluded}\nSUMMARY:Fast")

    assert days_shown(daily, window, "2026-02-27", 9, zone) == ["2026-03-01", "2026-03-03", "2026-03-04"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Auckland", "America/Vancouver"])
@pytest.mark.parametrize("until", ["20260319", "20260319T235959"])
def test_until_includes_its_day_in_the_events_zone(window: Windows, ics: Calendars, zone: str, until: str) -> None:
    weekly = ics(f"DTSTART;TZID={zone}:20260305T090000\nRRULE:FREQ=WEEKLY;UNTIL={until}\nSUMMARY:Choir")

    assert days_shown(weekly, window, "2026-03-01", 31, zone) == ["2026-03-05", "2026-03-12", "2026-03-19"]


def test_until_by_day_is_kept_by_all_day_and_floating_events(window: Windows, ics: Calendars) -> None:
    calendar = ics(
        "DTSTART;VALUE=DATE:20260317\nRRULE:FREQ=DAILY;UNTIL=20260318",
        "DTSTART:20260317T090000\nRRULE:FREQ=DAILY;UNTIL=20260319",
    )

    assert days_shown(calendar, window, "2026-03-16", 6, "Europe/Vienna") == ["2026-03-17", "2026-03-18", "2026-03-19"]


def test_windows_removed_and_invented_zones_are_all_shown(window: Windows, ics: Calendars) -> None:
    calendar = ics(
        "DTSTART;TZID=Europe/London:20260305T090000\nSUMMARY:IANA",
        "DTSTART;TZID=W. Europe Standard Time:20260305T090000\nSUMMARY:Windows",
        "DTSTART;TZID=Asia/Calcutta:20260305T090000\nSUMMARY:Alias",
        "DTSTART;TZID=Mars/Olympus:20260304T110000\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:Invented",
    )
    reading = read_calendar("calendar", calendar, window("2026-03-05"))

    assert hours(reading.items) == [
        "04:30 Alias",
        "09:00 Windows",
        "10:00 IANA",
        "11:00 Invented (zone unknown: Mars/Olympus)",
    ]


def test_an_unknown_zone_of_the_calendar_is_remarked(window: Windows, ics: Calendars) -> None:
    calendar = ics("DTSTART:20260305T090000\nSUMMARY:Talk", head="X-WR-TIMEZONE:Mars/Base\n")
    reading = read_calendar("calendar", calendar, window("2026-03-05"))

    assert hours(reading.items) == ["09:00 Talk"]
    assert "Mars/Base" in reading.remarks[0].text


def test_a_windows_zone_of_the_calendar_is_translated(window: Windows, ics: Calendars) -> None:
    calendar = ics("DTSTART:20260305T090000\nSUMMARY:Talk", head="X-WR-TIMEZONE:GMT Standard Time\n")

    assert hours(read_calendar("calendar", calendar, window("2026-03-05")).items) == ["10:00 Talk"]


def test_two_calendars_may_define_one_zone_name_differently(window: Windows, ics: Calendars) -> None:
    def custom(offset: str) -> bytes:
        rule = f"DTSTART:16010101T000000\nTZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\n"
        zone = f"BEGIN:VTIMEZONE\nTZID:Customized\nBEGIN:STANDARD\n{rule}END:STANDARD\nEND:VTIMEZONE\n"
        return ics("DTSTART;TZID=Customized:20260305T090000\nSUMMARY:Call", head=zone)

    shown = [hours(read_calendar("c", custom(offset), window("2026-03-05", "UTC")).items) for offset in ("+0200", "+0500")]

    assert shown == [["07:00 Call"], ["04:00 Call"]]


def test_one_bad_event_does_not_blank_the_calendar(window: Windows, ics: Calendars) -> None:
    calendar = ics(
        "DTSTART:2026-03-05\nSUMMARY:Bad date",
        "SUMMARY:No date",
        "DTSTART:20260305T090000Z\nRRULE:FREQ=NEVER\nSUMMARY:Bad rule",
        "DTSTART:20260305T120000Z\nSUMMARY:Lunch",
    )
    reading = read_calendar("calendar", calendar, window("2026-03-05"))

    assert hours(reading.items) == ["13:00 Lunch"]
    assert [remark.text for remark in reading.remarks] == ["events that cannot be read, left out: 3"]


def test_a_moved_occurrence_moves_also_beside_a_bad_event(window: Windows) -> None:
    calendar = (
        b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTART:20260302T090000Z\r\nRRULE:FREQ=DAILY\r\nSUMMARY:Daily\r\nEND:VEVENT\r\n"
        b"BEGIN:VEVENT\r\nUID:a\r\nRECURRENCE-ID:20260305T090000Z\r\nDTSTART:20260305T150000Z\r\nSUMMARY:Moved\r\nEND:VEVENT\r\n"
        b"BEGIN:VEVENT\r\nUID:b\r\nSUMMARY:No date\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )

    assert hours(read_calendar("c", calendar, window("2026-03-05", "UTC")).items) == ["15:00 Moved"]


def test_events_that_repeat_every_second_are_left_out(window: Windows, ics: Calendars) -> None:
    calendar = ics("DTSTART:19700101T000000Z\nRRULE:FREQ=SECONDLY", "DTSTART:20260305T120000Z\nSUMMARY:Lunch")
    reading = read_calendar("calendar", calendar, window("2026-03-05", "UTC"))

    assert hours(reading.items) == ["12:00 Lunch"]
    assert [remark.text for remark in reading.remarks] == ["events that repeat every minute or second, left out: 1"]


def test_an_event_that_crosses_midnight_is_on_both_days(window: Windows, ics: Calendars) -> None:
    calendar = ics("DTSTART:20260305T220000Z\nDTEND:20260306T020000Z\nSUMMARY:Night shift")

    assert days_shown(calendar, window, "2026-03-04", 4, "UTC") == ["2026-03-05", "2026-03-06"]


def test_an_all_day_event_that_ends_as_it_begins_is_the_whole_day(window: Windows, ics: Calendars) -> None:
    calendar = ics("DTSTART:20260305\nDTEND:20260305\nSUMMARY:Holiday")

    assert days_shown(calendar, window, "2026-03-04", 4, "America/Vancouver") == ["2026-03-05"]


def test_a_day_and_a_moment_may_be_mixed(window: Windows, ics: Calendars) -> None:
    calendar = ics(
        "DTSTART:20260305T080000Z\nDTEND;VALUE=DATE:20260306\nSUMMARY:Until midnight",
        "DTSTART;VALUE=DATE:20260305\nDTEND:20260306T000000Z\nSUMMARY:Whole day",
    )
    reading = read_calendar("c", calendar, window("2026-03-05", "UTC"))

    assert [item.text for item in reading.items] == ["Whole day", "Until midnight"]


def test_titles_say_place_and_cancellation_but_no_meeting_address(window: Windows, ics: Calendars) -> None:
    calendar = ics(
        "DTSTART:20260305T080000Z\nSUMMARY:Board\nLOCATION:Attic\nSTATUS:CANCELLED",
        "DTSTART:20260305T090000Z\nSUMMARY:Call\nLOCATION:https://meet.example/secret",
        "DTSTART:20260305T100000Z",
    )

    assert hours(read_calendar("c", calendar, window("2026-03-05", "UTC")).items) == [
        "08:00 Cancelled: Board, Attic",
        "09:00 Call",
        "10:00 (no title)",
    ]


def test_events_without_a_calendar_around_them_are_read(window: Windows) -> None:
    event = b"BEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260305T090000Z\r\nSUMMARY:Alone\r\nEND:VEVENT\r\n"

    assert hours(read_calendar("c", event, window("2026-03-05", "UTC")).items) == ["09:00 Alone"]


@pytest.mark.parametrize("content", [b"", b"<html>login</html>", b"\xff\xfe\x00", b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n"])
def test_what_is_no_calendar_is_a_gap(window: Windows, content: bytes) -> None:
    reading = read_calendar("calendar", content, window())

    assert [gap.reason for gap in reading.gaps] == ["cannot be read as a calendar (ValueError)"]
