"""What the next start must know of the last one, in `<data folder>/server/notes.json`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from workers.processes.folders import usable


@dataclass(frozen=True, slots=True)
class Notes:
    """The socket of the server, and the program that wrote the data, with its version; None as long as there was none."""

    socket: Path | None = None
    writer: Path | None = None
    writer_version: str | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the notes. There is nothing in them that cannot be found anew, so unreadable ones count as none."""
        try:
            content = json.loads(path.read_bytes())
            return cls(_path(content["socket"]), _path(content["writer"]), content["writer_version"])
        except (OSError, ValueError, KeyError, TypeError):
            return cls()

    def write(self, path: Path) -> None:
        """Write the notes, all at once."""
        part = path.with_suffix(".part")
        with usable(path):
            part.write_text(json.dumps(asdict(self), default=str))
            part.replace(path)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)
