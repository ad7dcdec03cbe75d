"""Factories for what sources are given: a window, a calendar, a feed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

import pytest

from mesh.sources.fetch import Document
from mesh.sources.window import Window, briefing_window


@pytest.fixture
def window() -> Callable[..., Window]:
    """Make the window of a briefing at 07:00 on its own day, unless said otherwise."""

    def make(day: str = "2026-11-30", zone: str = "Europe/Vienna", hours: float = 24) -> Window:
        date = dt.date.fromisoformat(day)
        now = dt.datetime.combine(date, dt.time(7), ZoneInfo(zone))
        return briefing_window(date, now, ZoneInfo(zone), hours=hours)

    return make


@pytest.fixture
def ics() -> Callable[..., bytes]:
    """Make a calendar of events, each given as the lines between BEGIN:VEVENT and END:VEVENT."""

    def make(*events: str, head: str = "") -> bytes:
        parts = [f"BEGIN:VEVENT\nUID:{number}\n{event}\nEND:VEVENT\n" for number, event in enumerate(events)]
        text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\n{head}{''.join(parts)}END:VCALENDAR\n"
        return text.replace("\n", "\r\n").encode()

    return make


@pytest.fixture
def rss() -> Callable[..., Document]:
    """Make an RSS feed of items, each given as the elements inside it."""

    def make(*items: str, prolog: str = "<?xml version='1.0'?>", charset: str = "utf-8", media: str = "") -> Document:
        body = "".join(f"<item>{item}</item>" for item in items)
        text = f"{prolog}<rss version='2.0'><channel><title>t</title>{body}</channel></rss>"
        return Document(text.encode(charset), {"content-type": media} if media else {})

    return make
