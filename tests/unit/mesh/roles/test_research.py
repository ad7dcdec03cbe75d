"""What the research role writes about feeds and notes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from mesh.roles.document import render
from mesh.roles.research import research_sections
from mesh.settings import MeshConfig
from mesh.sources.item import Gap, Item, Kind, Reading, Remark, Severity
from mesh.sources.window import Window

Config = Callable[..., MeshConfig]
FEEDS = [{"name": "Paper", "url": "https://paper.example/"}]
NOTES = [{"name": "Notebook", "path": "notes"}]


def news(text: str, hour: int | None, source: str = "Paper", link: str | None = None) -> Item:
    at = None if hour is None else dt.datetime(2026, 11, 30, hour, tzinfo=dt.UTC)
    return Item(Kind.NEWS, text, source, text, at=at, link=link)


def task(text: str, due: str | None) -> Item:
    at = dt.date.fromisoformat(due) if due else None
    severity = Severity.WARNING if due and due <= "2026-11-30" else Severity.INFO
    return Item(Kind.TASK, text, "Notebook/a.md", text, at=at, severity=severity)


def written(reading: Reading, window: Window, config: MeshConfig) -> str:
    return render(research_sections(reading, window, config))


def test_news_come_newest_first_with_source_and_local_date(window: Window, config: Config) -> None:
    reading = Reading(items=(news("Old", 1), news("Undated", None), news("New", 5, "Gazette", "https://g.example/1")))

    assert written(reading, window, config(feeds=FEEDS)) == (
        "## What is new\n\n"
        "- [New](https://g.example/1) · *Gazette, Mon 30 Nov 06:00*\n"
        "- Old · *Paper, Mon 30 Nov 02:00*\n"
        "- Undated · *Paper, undated*\n"
    )


def test_a_talkative_source_is_cut_and_counted(window: Window, config: Config) -> None:
    reading = Reading(items=(*(news(f"{number}", 5) for number in range(9)), news("Quiet", 1, "Gazette")))
    text = written(reading, window, config(feeds=FEEDS, briefing={"items_per_source": 2}))

    assert text.count("*Paper,") == 2
    assert "- Quiet ·" in text
    assert text.endswith("- and 7 more from Paper\n")


def test_a_title_cannot_forge_structure(window: Window, config: Config) -> None:
    text = written(
        Reading(items=(news("## Needs attention *now* [pay](https://evil.example)", 5),)), window, config(feeds=FEEDS)
    )

    assert "\n- \\## Needs attention \\*now\\* \\[pay\\](https://evil.example) · *Paper," in text


def test_due_tasks_need_attention_and_the_others_are_notes(window: Window, config: Config) -> None:
    changed = Item(Kind.NOTE, "Oven", "Notebook/a.md", "a", at=dt.datetime(2026, 11, 30, 4, tzinfo=dt.UTC))
    tasks = (task("pay rent", "2026-11-27"), task("call", "2026-11-30"), task("order", "2026-12-04"), task("tidy", None))

    assert written(Reading(items=(*tasks, changed)), window, config(notes=NOTES)) == (
        "## Needs attention\n\n"
        "- **Overdue** pay rent · *Notebook/a.md, due Fri 27 Nov*\n"
        "- **Due today** call · *Notebook/a.md, due Mon 30 Nov*\n\n"
        "## Notes\n\n"
        "- **To do** order · *Notebook/a.md, due Fri 4 Dec*\n"
        "- **To do** tidy · *Notebook/a.md, undated*\n"
        "- **Changed** Oven · *Notebook/a.md, Mon 30 Nov 05:00*\n"
    )


def test_a_day_without_news_says_so(window: Window, config: Config) -> None:
    text = written(Reading(), window, config(feeds=FEEDS, notes=NOTES))

    assert "Nothing new since Sun 29 Nov 07:00." in text
    assert "No note changed, and nothing falls due this week." in text


def test_gaps_and_remarks_are_visible(window: Window, config: Config) -> None:
    reading = Reading(gaps=(Gap("Paper", "the server answered 503"),), remarks=(Remark("Paper", "read in part"),))
    text = written(reading, window, config(feeds=FEEDS))

    assert "## Could not be read\n\n- **Paper**: the server answered 503" in text
    assert "## Read with care\n\n- **Paper**: read in part" in text


def test_without_anything_to_read_the_text_says_how_that_came(window: Window, config: Config) -> None:
    assert "jarvis.toml names no feeds and no notes" in written(Reading(), window, config())
