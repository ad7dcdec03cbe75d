"""The ledger: one small file for each process that an owner started, in `<data folder>/processes/`.

A record is written by the child itself (see `launch`), so there is no moment at which the child runs without one. Its first
line is what was asked, as the owner put it; the second is who took it on: pid and start time. It is removed by whoever
has seen that the child and all that it started are gone.

A record counts only in the folder it was written to: in a copy of it the processes are those of somebody else.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from workers.errors import FolderUnusableError
from workers.processes.folders import make_private
from workers.processes.identity import file_id


@dataclass(frozen=True, slots=True)
class Entry:
    """A process that was started.

    `role` is what it is for, unique among the processes of one owner. `pid` and `started` are its identity; its group and
    its session bear the same number. `mark` is what it and all that it starts carry in their environment. `foundation`
    says that others stand on it, so that it ends after them. `grace` is how long (s) it may take to end when asked.
    `home` is the folder of the record, as `file_id` names it.
    """

    home: str
    mark: str
    role: str
    pid: int
    started: str
    foundation: bool
    grace: float


class Ledger:
    """The records under one data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "processes"

    def open(self) -> None:
        """Make the folder of the records, and remove what is none of its own: halves of dead writers, and copies."""
        make_private(self.folder)
        own = {self.path(entry.mark) for entry in self.entries()}
        for path in self.folder.iterdir():
            if path not in own:
                path.unlink(missing_ok=True)

    def first_line(self, mark: str, role: str, *, foundation: bool, grace: float) -> str:
        """Return what the owner puts into a record."""
        return json.dumps({"home": file_id(self.folder), "mark": mark, "role": role, "foundation": foundation, "grace": grace})

    def path(self, mark: str) -> Path:
        """Return where the record of the process with this mark is."""
        return self.folder / f"{mark}.json"

    def entries(self) -> list[Entry]:
        """Return what is recorded, in no order. Raise `FolderUnusableError` for a file that is no record."""
        found = [_read(path) for path in sorted(self.folder.glob("*.json"))]
        return [entry for entry in found if entry is not None and entry.home == file_id(self.folder)]

    def find(self, mark: str) -> Entry | None:
        """Return the record with this mark, or None as long as there is none."""
        return _read(self.path(mark))

    def forget(self, entry: Entry) -> None:
        """Remove a record. It may be gone already."""
        self.path(entry.mark).unlink(missing_ok=True)


def _read(path: Path) -> Entry | None:
    try:
        first, second = path.read_text().splitlines()
        pid, _, started = second.partition(" ")
        return Entry(pid=int(pid), started=started, **json.loads(first))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise FolderUnusableError(f"{path} is not a record of a process: remove it and try again.") from error
