"""The contract between the roles: a Markdown text in sections, taken apart and put together by heading.

A section begins with a line `## Heading`. Its facts are top-level bullets (`- `); `- and 6 more …` stands for six of
them. Everything works on text that somebody else wrote, so nothing is ever dropped: an unknown section goes to the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

ATTENTION = "Needs attention"
CALENDAR = "Today's calendar"
NEWS = "What is new"
SERVICES = "Services"
NOTES = "Notes"
GAPS = "Could not be read"
REMARKS = "Read with care"
ORDER = (ATTENTION, CALENDAR, NEWS, SERVICES, NOTES, GAPS, REMARKS)
"""The sections of a briefing, in the order in which they are read at breakfast."""

_HEADING = re.compile(r"## +(?P<heading>.*?)(?: +#+)? *$")
_FENCE = re.compile(r" {0,3}(?P<fence>```+|~~~+)")
_MORE = re.compile(r"- and (?P<count>\d{1,6}) more\b")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading (empty for text before the first one) and the Markdown below it, without blank lines at its ends."""

    heading: str
    body: str


def split(text: str) -> list[Section]:
    """Return the sections of `text` in their order. A `## ` inside a code block is code."""
    sections: list[Section] = []
    heading, lines, fence = "", list[str](), ""
    for line in _lines(text):
        found = _HEADING.match(line)
        if found and not fence:
            sections.append(_section(heading, lines))
            heading, lines = found["heading"].strip(), []
        else:
            fence = _fence_after(line, fence)
            lines.append(line)
    # A block that was left open would swallow the sections that follow in the briefing.
    sections.append(_section(heading, [*lines, fence] if fence else lines))
    return [section for section in sections if section.heading or section.body]


def gather(sections: Iterable[Section], order: Sequence[str] = ORDER) -> list[Section]:
    """Return one section for each heading: those of `order` first, in that order, then the others as they came.

    Headings that differ only in case or in closing punctuation are the same; that of `order` is the one that is kept.
    """
    names = {_folded(heading): heading for heading in order}
    bodies: dict[str, list[str]] = {}
    for section in sections:
        heading = names.setdefault(_folded(section.heading), section.heading)
        bodies.setdefault(heading, []).append(section.body)
    return [Section(heading, _join(bodies[heading])) for heading in dict.fromkeys([*order, *bodies]) if heading in bodies]


def render(sections: Iterable[Section]) -> str:
    """Return the sections as text, separated by blank lines."""
    return "\n\n".join(_paragraphs(sections)) + "\n"


def count_facts(body: str) -> int:
    """Return how many facts a section holds."""
    return sum(_worth(line) for line in _lines(body) if line.startswith(("- ", "* ")))


def _lines(text: str) -> list[str]:
    """Return the lines as Markdown sees them; `str.splitlines` would also break at form feeds and the like."""
    return text.replace("\r\n", "\n").split("\n")


def _section(heading: str, lines: list[str]) -> Section:
    return Section(heading, "\n".join(lines).strip("\n"))


def _fence_after(line: str, fence: str) -> str:
    """Return the marker of the code block that is open after `line`, empty if none is."""
    found = _FENCE.match(line)
    if not found:
        return fence
    if not fence:
        return found["fence"]
    closes = found["fence"].startswith(fence) and not line.strip().strip(fence[0])
    return "" if closes else fence


def _folded(heading: str) -> str:
    return heading.strip().rstrip(":.!").strip().casefold()


def _join(bodies: list[str]) -> str:
    """Return the bodies as one; lists that meet become one list."""
    whole = ""
    for body in filter(None, bodies):
        lists_meet = whole.rpartition("\n")[2].startswith("- ") and body.startswith("- ")
        gap = "\n" if lists_meet else "\n\n"
        whole = whole + gap + body if whole else body
    return whole


def _paragraphs(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        if section.heading:
            yield f"## {section.heading}"
        if section.body:
            yield section.body


def _worth(line: str) -> int:
    more = _MORE.match(line)
    return int(more["count"]) if more else 1
