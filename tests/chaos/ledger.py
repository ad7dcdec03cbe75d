"""The outside: a ledger that every effect is written to, which no fault reaches and no run can take back.

A line is appended and synced before its effect counts as made, so that a process which dies at any moment leaves either the
whole line or none. It stands for whatever people do outside the store: a payment, a mail.

kind       written                                              key
segment    when an execution begins                             none
effect     by each effect that is made                          its idempotency key
try        by each try of a node that fails on purpose          none
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Ledger", "Line", "outside"]

LEDGER = "CHAOS_LEDGER"
"""The variable that names the file."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``at`` is a Unix second; ``attempt`` is the execution that wrote it, ``pid`` its process."""

    kind: str
    workflow_id: str
    attempt: int
    name: str = ""
    key: str = ""
    pid: int = 0
    at: float = 0


class Ledger:
    """A file that many processes append to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, kind: str, workflow_id: str, attempt: int, name: str = "", key: str = "") -> None:
        """Append a line in one call to the system, so that lines of two processes never mix."""
        line = Line(kind, workflow_id, attempt, name, key, os.getpid(), time.time())
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, json.dumps(asdict(line)).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def lines(self) -> list[Line]:
        """All lines, in the order of their writing."""
        return [Line(**json.loads(line)) for line in self._path.read_text().splitlines()] if self._path.exists() else []


def outside() -> Ledger:
    """The ledger of this process, for workflows."""
    return Ledger(Path(os.environ[LEDGER]))
