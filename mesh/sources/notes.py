"""What stands in a folder of Markdown notes: which of them changed, and the open tasks in them.

A task is a line `- [ ] order flour`. It falls due by `due: 2026-12-01` or `@2026-12-01` anywhere in that line.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mesh.sources.item import Item, Kind, Reading, Remark, Severity
from mesh.sources.text import clean
from mesh.sources.window import Window

MAX_NOTES = 2000
MAX_NOTE_BYTES = 1024 * 1024
SOON_DAYS = 7
"""A task that falls due within so many days is shown, whenever its note changed."""

_TASK = re.compile(r"\s*[-*+] \[ \] +(?P<text>\S.*)")
_DUE = re.compile(r"\(?(?:due:\s*|@)(?P<due>\d{4}-\d{2}-\d{2})\b\)?", re.IGNORECASE)
_HEADING = re.compile(r"# +(?P<title>\S.*)")
_FENCE = re.compile(r"\s*(```|~~~)")


class NotesSource:
    """One folder of notes, with its sub-folders. Hidden files and folders are left alone."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder

    def read(self, window: Window) -> Reading:
        """Return the tasks, the first due first, and the notes that changed within the window, the newest first."""
        if not self._folder.is_dir():
            return Reading.gap(self.name, f"there is no folder {self._folder}")
        paths = list(_markdown_files(self._folder))
        read = [self._items(path, window) for path in paths[:MAX_NOTES]]
        items = [item for found in read if found for item in found]
        return Reading(
            items=tuple(sorted(items, key=_order)),
            remarks=tuple(Remark(self.name, text) for text in _remarks(len(paths), read.count(None))),
        )

    def _items(self, path: Path, window: Window) -> list[Item] | None:
        """Return what one note has to say, None if it cannot be read."""
        try:
            with path.open("rb") as file:
                content = file.read(MAX_NOTE_BYTES).decode("utf-8", "replace")
            changed = dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC)
        except (OSError, OverflowError, ValueError):
            return None
        place = clean(path.relative_to(self._folder).as_posix())
        return list(_note_items(read_note(content, path.stem), f"{self.name}/{place}", changed, window))


@dataclass(frozen=True, slots=True)
class Task:
    """An open task and the day it falls due, if it says so."""

    text: str
    due: dt.date | None


@dataclass(frozen=True, slots=True)
class Note:
    """What a note is called, and what is still to do in it."""

    title: str
    tasks: tuple[Task, ...]


def read_note(content: str, fallback_title: str) -> Note:
    """Return the title (the first heading) and the open tasks of a Markdown text. Code blocks are not read."""
    lines = list(_outside_code(content.splitlines()))
    titles = [found["title"] for line in lines if (found := _HEADING.match(line))]
    tasks = [_task(found["text"]) for line in lines if (found := _TASK.match(line))]
    return Note(clean(titles[0] if titles else fallback_title), tuple(task for task in tasks if task.text))


def _outside_code(lines: list[str]) -> Iterator[str]:
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield line


def _task(text: str) -> Task:
    found = _DUE.search(text)
    try:
        due = dt.date.fromisoformat(found["due"]) if found else None
    except ValueError:
        # The 31st of February: shown as it was written.
        return Task(clean(text), None)
    return Task(clean(_DUE.sub("", text)).strip(" ,;"), due)


def _note_items(note: Note, source: str, changed: dt.datetime, window: Window) -> Iterator[Item]:
    is_new = window.since <= changed <= window.until
    if is_new:
        yield Item(Kind.NOTE, note.title, source, key=source, at=changed)
    for task in note.tasks:
        if _is_shown(task, window) or (is_new and task.due is None):
            due = task.due is not None and task.due <= window.day
            severity = Severity.WARNING if due else Severity.INFO
            yield Item(Kind.TASK, task.text, source, key=f"{source}/{task.text}", at=task.due, severity=severity)


def _is_shown(task: Task, window: Window) -> bool:
    return task.due is not None and task.due <= window.day + dt.timedelta(days=SOON_DAYS)


def _order(item: Item) -> tuple[bool, str, float, str]:
    if isinstance(item.at, dt.datetime):
        return True, "", -item.at.timestamp(), item.source
    return False, item.at.isoformat() if item.at else "undated", 0.0, item.source


def _markdown_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        # In place: this is how os.walk is told the order, and what to leave out.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from filter(_is_note, (Path(place, name) for name in sorted(files)))


def _is_note(path: Path) -> bool:
    return path.suffix.lower() in (".md", ".markdown") and not path.name.startswith(".") and path.is_file()


def _remarks(count: int, unreadable: int) -> Iterator[str]:
    if count > MAX_NOTES:
        yield f"only the first {MAX_NOTES} of {count} notes were read"
    if unreadable:
        yield f"notes that cannot be read, left out: {unreadable}"
