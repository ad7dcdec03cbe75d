"""Follows log files: whole lines as they come, from where each file ended when it was taken on."""

from collections.abc import Iterator
from pathlib import Path

__all__ = ["LogFollower"]

CHUNK = 65536


class _Followed:
    """One file. It may not be there yet, and may be set aside for a new one while its process is started again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def lines(self) -> Iterator[str]:
        for chunk in self._chunks():
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace").rstrip() for line in whole)

    def _chunks(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                if self._path.stat().st_size < self._place:
                    self._place = 0
                file.seek(self._place)
                while chunk := file.read(CHUNK):
                    self._place += len(chunk)
                    yield chunk
        except FileNotFoundError:
            return


class LogFollower:
    """The logs of several roles."""

    def __init__(self) -> None:
        self._logs: dict[str, _Followed] = {}

    def add(self, role: str, log: Path) -> None:
        """Follow the log of a role from its present end."""
        self._logs[role] = _Followed(log)

    def new_lines(self) -> Iterator[tuple[str, str]]:
        """Roles and lines that came since the last call, empty lines left out."""
        for role, log in self._logs.items():
            yield from ((role, line) for line in log.lines() if line.strip())
