"""The research role, by rule: what is new in the feeds and the notes, and which tasks fall due."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from mesh.roles.assignment import Assignment
from mesh.roles.document import ATTENTION, NEWS, NOTES, REMARKS, Section, render
from mesh.roles.lines import capped, filled, line, task_line, trouble_sections
from mesh.roles.phrases import stamp
from mesh.settings import MeshConfig
from mesh.sources.feeds import FeedSource
from mesh.sources.fetch import Fetcher
from mesh.sources.item import Item, Kind, Reading, Severity
from mesh.sources.notes import NotesSource
from mesh.sources.reader import read_all
from mesh.sources.source import Source
from mesh.sources.window import Window, briefing_window

MAX_TASKS_DUE = 20
MAX_NOTES_SHOWN = 10


class ResearchRole:
    """Reads feeds and notes afresh for every assignment."""

    def __init__(self, config: MeshConfig, fetcher: Callable[[], Fetcher], clock: Callable[[], dt.datetime]) -> None:
        self._config = config
        self._fetcher = fetcher
        self._clock = clock

    def perform(self, assignment: Assignment) -> str:
        """Return the sections on news and notes for the assignment's date, as Markdown."""
        config = self._config
        window = briefing_window(assignment.date, self._clock(), config.operator.tzinfo, hours=config.briefing.window_hours)
        with self._fetcher() as fetcher:
            reading = read_all(research_sources(config, fetcher), window)
        return render(research_sections(reading, window, config))


def research_sources(config: MeshConfig, fetcher: Fetcher) -> list[Source]:
    """Return the feeds and the notes of the settings, in their order."""
    feeds: list[Source] = [FeedSource(feed.name, feed.location, fetcher) for feed in config.feeds]
    return feeds + [NotesSource(notes.name, notes.path) for notes in config.notes]


def research_sections(reading: Reading, window: Window, config: MeshConfig) -> Iterator[Section]:
    """Yield what the research role has to say about a reading."""
    tasks = reading.of(Kind.TASK)
    due = [task for task in tasks if task.severity > Severity.INFO]
    other = [item for item in reading.of(Kind.TASK, Kind.NOTE) if item not in due]
    yield from filled(ATTENTION, capped(due, MAX_TASKS_DUE, lambda item: task_line(item, window), lambda _: "your notes"))
    if config.feeds:
        nothing = f"Nothing new since {stamp(window.since, window)}."
        yield from filled(NEWS, _news(reading.of(Kind.NEWS), window, config.briefing.items_per_source), nothing)
    if config.notes:
        yield from filled(NOTES, _notes(other, window), "No note changed, and nothing falls due this week.")
    if not config.feeds and not config.notes:
        yield Section(REMARKS, "- **research**: jarvis.toml names no feeds and no notes to read")
    yield from trouble_sections(reading)


def _news(items: list[Item], window: Window, per_source: int) -> Iterator[str]:
    """Yield the news of all feeds together, newest first, and the undated ones after them."""
    return capped(sorted(items, key=_newest_first), per_source, lambda item: line(item, window))


def _newest_first(item: Item) -> float:
    return -item.at.timestamp() if isinstance(item.at, dt.datetime) else 0.0


def _notes(items: list[Item], window: Window) -> Iterator[str]:
    return capped(items, MAX_NOTES_SHOWN, lambda item: _note_line(item, window), lambda _: "your notes")


def _note_line(item: Item, window: Window) -> str:
    return line(item, window, label="Changed") if item.kind is Kind.NOTE else task_line(item, window)
