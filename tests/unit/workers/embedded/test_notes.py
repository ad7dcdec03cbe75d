"""What one start notes for the next."""

from pathlib import Path

import pytest

from workers.embedded.notes import Notes


@pytest.mark.parametrize("notes", [Notes(Path("/tmp/jarvis-a/s"), Path("/usr/bin/redis-server"), "Redis 7.0.15"), Notes()])
def test_notes_are_read_as_written(tmp_path, notes):
    notes.write(tmp_path / "notes.json")
    assert Notes.read(tmp_path / "notes.json") == notes


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"socket": 1, "writer": 2, "writer_version": 3}'])
def test_notes_that_cannot_be_read_count_as_none(tmp_path, content):
    if content is not None:
        (tmp_path / "notes.json").write_text(content)
    assert Notes.read(tmp_path / "notes.json") == Notes()
