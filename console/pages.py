"""Finished briefings as files: `<home>/briefings/<date>.md`, `<date>.<edition>.md` for a later edition."""

import datetime as dt
import os
import tempfile
from pathlib import Path

from workers.processes.folders import make_private, usable

__all__ = ["page_path", "write_page"]

FOLDER = "briefings"


def page_path(home: Path, date: dt.date, edition: int) -> Path:
    """Where a briefing is written."""
    suffix = "" if edition == 1 else f".{edition}"
    return home / FOLDER / f"{date.isoformat()}{suffix}.md"


def write_page(path: Path, text: str) -> None:
    """Write a file so that a reader finds all of it or what was there before. Raises `FolderUnusableError`."""
    make_private(path.parent)
    with usable(path):
        # A name of its own for each writer: two commands may write the same briefing.
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
