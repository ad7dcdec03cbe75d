"""The briefing role, by rule: the two texts become one, with a header that sums it up and a footer that says from what."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from mesh.roles.assignment import Assignment
from mesh.roles.document import ATTENTION, CALENDAR, GAPS, NEWS, Section, count_facts, gather, render, split
from mesh.roles.markdown import escape
from mesh.roles.phrases import counted, listed, long_day, stamp
from mesh.settings import MeshConfig
from mesh.sources.window import Window, briefing_window

_COUNTED = {CALENDAR: "appointment", NEWS: "new item"}
QUIET_ATTENTION = "Nothing needs your attention."


class BriefingRole:
    """Composes; it reads no source of its own."""

    def __init__(self, config: MeshConfig, clock: Callable[[], dt.datetime]) -> None:
        self._config = config
        self._clock = clock

    def perform(self, assignment: Assignment) -> str:
        """Return the finished briefing, as Markdown. A text that is missing is a gap in it."""
        now = self._clock()
        window = briefing_window(assignment.date, now, self._config.operator.tzinfo, hours=self._config.briefing.window_hours)
        # Operations first: what is down comes before what is due.
        texts = {"operations": assignment.operations, "research": assignment.research}
        sections = gather(
            [Section(ATTENTION, ""), *(part for role, text in texts.items() for part in _contribution(role, text))]
        )
        header = f"# {long_day(window.day)}\n\n{_summary(sections)}"
        return "\n\n".join([header, render(map(_spoken, sections)).strip("\n"), _footer(self._config, window, now)]) + "\n"


def _contribution(role: str, text: str | None) -> Iterator[Section]:
    if not (text or "").strip():
        yield Section(GAPS, f"- **{role}**: the agent delivered no text")
    for section in split(text or ""):
        yield section if section.heading else Section(f"From {role}", section.body)


def _spoken(section: Section) -> Section:
    """Say in words that nothing needs attention: a missing section could also mean that nobody looked."""
    return Section(ATTENTION, section.body or QUIET_ATTENTION) if section.heading == ATTENTION else section


def _summary(sections: list[Section]) -> str:
    """Return the briefing in a sentence."""
    facts = {section.heading: count_facts(section.body) for section in sections}
    attention, gaps = facts.get(ATTENTION, 0), facts.get(GAPS, 0)
    parts = [f"{counted(attention, 'thing needs', 'things need')} attention" if attention else "nothing needs attention"]
    parts += [counted(facts[heading], noun) for heading, noun in _COUNTED.items() if heading in facts]
    if gaps:
        parts.append(f"{counted(gaps, 'source')} could not be read")
    sentence = "; ".join(parts) + "."
    return f"A calm start: {sentence}" if not attention and not gaps else sentence[0].upper() + sentence[1:]


def _footer(config: MeshConfig, window: Window, now: dt.datetime) -> str:
    sources = [
        counted(len(tables), one, many)
        for tables, one, many in (
            (config.feeds, "feed", "feeds"),
            (config.calendars, "calendar", "calendars"),
            (config.notes, "folder of notes", "folders of notes"),
            (config.checks, "service check", "service checks"),
        )
        if tables
    ]
    reader = f" for {escape(config.operator.name)}" if config.operator.name else ""
    origin = f", from {listed(sources)}" if sources else ""
    return (
        f"---\n\n*Written{reader} on {stamp(now, window)}{origin}. "
        f"New means since {stamp(window.since, window)}. All times are {escape(config.operator.zone)}.*"
    )
