"""Folders of Markdown notes: what changed, what is due."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh.sources import notes as notes_module
from mesh.sources.item import Kind, Severity
from mesh.sources.notes import NotesSource, Task, read_note
from mesh.sources.window import Window

Windows = Callable[..., Window]
Write = Callable[..., Path]
MORNING = dt.datetime(2026, 11, 30, 5, 0, tzinfo=dt.UTC)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a note that changed at `changed`."""

    def make(name: str, content: str, changed: dt.datetime = MORNING) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        os.utime(path, (changed.timestamp(), changed.timestamp()))
        return path

    return make


def test_a_changed_note_is_shown_with_its_open_tasks(tmp_path: Path, write: Write, window: Windows) -> None:
    write("shop/oven.md", "# Oven\n\n- [x] measured\n- [ ] order it\n")
    items = NotesSource("Notebook", tmp_path).read(window()).items

    assert [(item.kind, item.text, item.source, item.at) for item in items] == [
        (Kind.TASK, "order it", "Notebook/shop/oven.md", None),
        (Kind.NOTE, "Oven", "Notebook/shop/oven.md", MORNING),
    ]


def test_a_note_that_did_not_change_shows_only_what_is_due(tmp_path: Path, write: Write, window: Windows) -> None:
    tasks = ["some day", "late @2026-11-27", "today (due: 2026-11-30)", "soon due: 2026-12-07", "far @2026-12-08"]
    write("old.md", "\n".join(f"- [ ] {task}" for task in tasks), changed=MORNING - dt.timedelta(days=90))
    items = NotesSource("Notebook", tmp_path).read(window()).items

    assert [(item.text, item.severity) for item in items] == [
        ("late", Severity.WARNING),
        ("today", Severity.WARNING),
        ("soon", Severity.INFO),
    ]


def test_hidden_folders_and_other_files_are_left_alone(tmp_path: Path, write: Write, window: Windows) -> None:
    write(".obsidian/plugin.md", "# Hidden")
    write("readme.txt", "# Text")
    write("dir.md/inner.markdown", "# Inner")

    assert [item.text for item in NotesSource("Notebook", tmp_path).read(window()).items] == ["Inner"]


def test_a_missing_folder_is_a_gap(tmp_path: Path, window: Windows) -> None:
    reading = NotesSource("Notebook", tmp_path / "nowhere").read(window())

    assert [gap.reason for gap in reading.gaps] == [f"there is no folder {tmp_path / 'nowhere'}"]


def test_a_folder_too_full_is_read_in_part_and_says_so(
    tmp_path: Path, write: Write, window: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes_module, "MAX_NOTES", 1)
    write("a.md", "# A")
    write("b.md", "# B")
    reading = NotesSource("Notebook", tmp_path).read(window())

    assert [item.text for item in reading.items] == ["A"]
    assert [remark.text for remark in reading.remarks] == ["only the first 1 of 2 notes were read"]


def test_bytes_that_are_no_text_are_read_as_far_as_possible(tmp_path: Path, window: Windows) -> None:
    path = tmp_path / "bytes.md"
    path.write_bytes(b"# \xff\x00 title\n")
    os.utime(path, (MORNING.timestamp(), MORNING.timestamp()))

    assert [item.text for item in NotesSource("Notebook", tmp_path).read(window()).items] == ["\ufffd\ufffd title"]


def test_the_title_is_the_first_heading_outside_code() -> None:
    assert read_note("```\n# comment\n- [ ] code\n```\n# Real\n# Second\n", "file").title == "Real"
    assert read_note("no heading", "file").title == "file"


def test_a_day_that_does_not_exist_leaves_the_task_as_it_was_written() -> None:
    assert read_note("* [ ] call @2026-02-31", "file").tasks == (Task("call @2026-02-31", None),)
    assert read_note("- [ ]   \n- [ ] @2026-02-01\n", "file").tasks == ()
