"""How an item becomes a line of the briefing: what it is, then its source and date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from mesh.roles.document import GAPS, REMARKS, Section
from mesh.roles.markdown import escape, link
from mesh.roles.phrases import stamp
from mesh.sources.item import Item, Reading
from mesh.sources.window import Window


def line(item: Item, window: Window, *, label: str = "", when: str = "") -> str:
    """Return the bullet of an item. `label` comes first, in bold; `when` is said in place of the item's own date."""
    text = link(item.text, item.link) if item.link else escape(item.text)
    origin = f"*{escape(item.source)}, {when or stamp(item.at, window)}*"
    return f"- {f'**{label}** ' if label else ''}{text} · {origin}"


def task_line(item: Item, window: Window) -> str:
    """Return the bullet of an open task, which says whether it is late."""
    if item.at is None:
        return line(item, window, label="To do")
    label = "Due today" if item.at == window.day else "Overdue" if item.at < window.day else "To do"
    return line(item, window, label=label, when=f"due {stamp(item.at, window)}")


def capped(
    items: Sequence[Item], limit: int, write: Callable[[Item], str], group: Callable[[Item], str] = lambda item: item.source
) -> Iterator[str]:
    """Yield the lines of at most `limit` items of each group, in their order, then how many more each group has."""
    seen = Counter[str]()
    for item in items:
        seen[group(item)] += 1
        if seen[group(item)] <= limit:
            yield write(item)
    for name, count in seen.items():
        if count > limit:
            yield f"- and {count - limit} more from {escape(name)}"


def trouble_sections(reading: Reading) -> Iterator[Section]:
    """Yield the sections on what could not be read, and on what was read with a remark, where there is any."""
    yield from filled(GAPS, (f"- **{escape(gap.source)}**: {escape(gap.reason)}" for gap in reading.gaps))
    yield from filled(REMARKS, (f"- **{escape(note.source)}**: {escape(note.text)}" for note in reading.remarks))


def filled(heading: str, lines: Iterable[str], otherwise: str = "") -> Iterator[Section]:
    """Yield a section with these lines, or with the sentence `otherwise`; none if there is neither."""
    body = "\n".join(lines) or otherwise
    if body:
        yield Section(heading, body)
