"""Feeds and calendars that nobody here wrote: what three other projects test themselves with.

Their source distributions are fetched once with pip and kept in pytest's cache folder. Offline these tests are skipped; in
CI a corpus that cannot be fetched is a failure.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from mesh.roles.assignment import Assignment
from mesh.roles.composer import BriefingRole
from mesh.roles.document import ORDER, render
from mesh.roles.operations import operations_sections
from mesh.roles.research import research_sections
from mesh.settings import MeshConfig
from mesh.sources.calendars import read_calendar
from mesh.sources.feeds import read_feed
from mesh.sources.fetch import Document
from mesh.sources.item import Reading
from mesh.sources.window import Window, briefing_window

CHARDET, ICALENDAR, RECURRING = "chardet==5.2.0", "icalendar==7.3.2", "recurring-ical-events==3.8.2"
ALL_YEARS = 24 * 365 * 60
VIENNA = ZoneInfo("Europe/Vienna")

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(600),
    # icalendar says aloud when it guesses the zone behind a vendor's prefix.
    pytest.mark.filterwarnings("ignore:Timezone .* is a globally unique TZID"),
]

Corpus = Callable[[str, str], dict[str, bytes]]


@pytest.fixture
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """Return the files with this suffix in the source distribution of this requirement, by their path."""

    def files(requirement: str, suffix: str) -> dict[str, bytes]:
        folder = Path(request.config.cache.mkdir("foreign-inputs"))
        with tarfile.open(fetched(requirement, folder)) as archive:
            names = [member.name for member in archive if member.isfile() and member.name.endswith(suffix)]
            return {name: content.read() for name in names if (content := archive.extractfile(name))}

    return files


def fetched(requirement: str, folder: Path) -> Path:
    """Return the source distribution; the first of several test processes fetches it for all."""
    name, _, version = requirement.partition("==")
    archive = folder / f"{name.replace('-', '_')}-{version}.tar.gz"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            download(requirement, name, folder)
    return archive


def download(requirement: str, name: str, folder: Path) -> None:
    # By name, so that what pip needs to look at the distribution may come as wheels.
    options = ["--no-deps", "--no-binary", name, "--retries", "1", "--timeout", "15", "--dest", str(folder)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    result = subprocess.run([*pip, *options, requirement], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        *_, last = ["pip gave no reason", *result.stderr.strip().splitlines()]
        reason = f"{requirement} cannot be fetched: {last}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def window_of(day: dt.date, hours: float = 24) -> Window:
    return briefing_window(day, dt.datetime.combine(day, dt.time(23, 59), VIENNA), VIENNA, hours=hours)


def briefing(research: str, operations: str, config: MeshConfig, window: Window) -> str:
    assignment = Assignment(role="briefing", date=window.day, research=research, operations=operations)
    return BriefingRole(config, lambda: window.until).perform(assignment)


def assert_is_a_briefing(text: str, name: str) -> None:
    """A briefing can be written to a file, and no foreign text has formed a heading in it."""
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]

    assert text.encode("utf-8").decode("utf-8") == text, name
    assert headings == [heading for heading in ORDER if heading in headings], name
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1, name


def test_every_feed_gives_items_or_a_gap_with_a_reason(corpus: Corpus) -> None:
    feeds = corpus(CHARDET, ".xml")
    window = window_of(dt.date(2026, 11, 30), ALL_YEARS)
    config = MeshConfig.model_validate({"feeds": [{"name": "feed", "path": "feed.xml"}]})
    readings = {name: read_feed("feed", Document(content), window) for name, content in feeds.items()}

    for name, reading in readings.items():
        assert reading.items or [gap for gap in reading.gaps if gap.reason], name
        assert len({item.key for item in reading.items}) == len(reading.items), name
        research = render(research_sections(reading, window, config))
        assert_is_a_briefing(briefing(research, "## Services\n- up", config, window), name)
    assert len(readings) == 314
    assert sum(bool(reading.items) for reading in readings.values()) >= 300
    assert sum(len(reading.items) for reading in readings.values()) >= 4300


def test_all_feeds_together_make_one_briefing(corpus: Corpus) -> None:
    feeds = list(corpus(CHARDET, ".xml").items())[::10]
    window = window_of(dt.date(2026, 11, 30), ALL_YEARS)
    tables = [{"name": f"feed {number}", "path": "feed.xml"} for number in range(len(feeds))]
    config = MeshConfig.model_validate({"feeds": tables, "briefing": {"items_per_source": 2}})
    readings = [read_feed(table["name"], Document(content), window) for table, (_, content) in zip(tables, feeds, strict=True)]
    text = briefing(render(research_sections(Reading.sum(readings), window, config)), "## Services\n- up", config, window)

    assert_is_a_briefing(text, "all feeds")
    assert f"{sum(len(reading.items) for reading in readings)} new items" in text


@pytest.mark.parametrize(("requirement", "count", "with_events"), [(ICALENDAR, 164, 80), (RECURRING, 96, 80)])
def test_every_calendar_gives_its_day_or_a_reason(corpus: Corpus, requirement: str, count: int, with_events: int) -> None:
    calendars = corpus(requirement, ".ics")
    config = MeshConfig.model_validate({"calendars": [{"name": "calendar", "path": "calendar.ics"}]})
    showing: list[str] = []

    for name, content in calendars.items():
        window = window_of(first_day(content))
        reading = read_calendar("calendar", content, window)
        assert all(gap.reason for gap in reading.gaps), name
        operations = render(operations_sections(reading, window, config))
        assert_is_a_briefing(briefing("## Notes\n- note", operations, config, window), name)
        showing += [name] if reading.items else []
    assert len(calendars) == count
    assert len(showing) >= with_events


def first_day(content: bytes) -> dt.date:
    """Return the day of the first event in a calendar, so that there is something to show."""
    events = content.partition(b"BEGIN:VEVENT")[2]
    found = re.search(rb"DTSTART[^:\r\n]*:(\d{4})(\d{2})(\d{2})", events)
    try:
        return dt.date(*(int(part) for part in found.groups())) if found else dt.date(2026, 11, 30)
    except ValueError:
        return dt.date(2026, 11, 30)
