"""Disks for the store in a directory: one that fails or dies at any operation, and one that knows what a power cut leaves."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from persistence.file.disk import Disk

OPERATIONS = ("make_folder", "create", "append", "cut", "move", "remove", "settle")


class Death(BaseException):
    """Stands for a process that is killed."""


class StruckDisk(Disk):
    """A disk on which ``strike`` is asked before and after every operation, by its number, name and moment."""

    def __init__(self) -> None:
        self.count = 0
        self.strike: Callable[[int, str, str], None] = lambda number, name, moment: None

    def __getattribute__(self, name: str):
        operation = object.__getattribute__(self, name)
        if name not in OPERATIONS:
            return operation

        def struck(*args):
            self.count += 1
            number = self.count
            self.strike(number, name, "before")
            if name in ("create", "append"):
                self._half(number, name, args)
            operation(*args)
            self.strike(number, name, "after")

        return struck

    def _half(self, number: int, name: str, args) -> None:
        """Half of the data reach the disk before something happens."""
        path, *place, data = args
        try:
            self.strike(number, name, "half")
        except BaseException:
            Disk.append(self, path, place[0] if place else 0, data[: len(data) // 2 + 1])
            raise

    def die_at(self, number: int, moment: str) -> None:
        """Let the process die there, and do nothing more."""

        def strike(count: int, name: str, at: str) -> None:
            if count > number or (count == number and at == moment):
                raise Death

        self.strike = strike


class ForgetfulDisk(Disk):
    """A disk that keeps apart what is durable and which changes of folders a power cut may still lose."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.durable: dict[str, list[bytes]] = {}
        """By path the file, in a list so that all its names share its content."""
        self.pending: list[tuple[str, list[bytes] | None]] = []
        """Changes of folders, in their order: this name leads to this file, or to none."""
        self.cuts: list[list[dict[str, bytes]]] = []
        """After each operation, everything that a power cut may leave."""

    def adopt(self) -> None:
        """Take what is there as durable."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        self.durable = {self._name(path): [path.read_bytes()] for path in files}

    def create(self, path: Path, data: bytes) -> None:
        super().create(path, data)
        self._change(path, [data])

    def append(self, path: Path, place: int, data: bytes) -> None:
        # While the data are on their way, any part of them may be there.
        for part in {0, len(data) // 2, len(data) - 1}:
            self._content(path, place, data[:part])
        super().append(path, place, data)
        self._content(path, place, data)

    def cut(self, path: Path, length: int) -> None:
        super().cut(path, length)
        self._content(path, length, b"")

    def move(self, source: Path, target: Path) -> None:
        super().move(source, target)
        file = self._files()[self._name(source)]
        self.pending.append((self._name(target), file))
        self._change(source, None)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._change(path, None)

    def settle(self, folder: Path) -> None:
        super().settle(folder)
        inside = [change for change in self.pending if (self.root / change[0]).parent == folder]
        self.pending = [change for change in self.pending if change not in inside]
        self._apply(self.durable, inside)
        self._note()

    def left(self) -> list[dict[str, bytes]]:
        """Everything that a power cut may leave now: any of the changes that are not durable may be lost."""
        outcomes = []
        for kept in product((True, False), repeat=len(self.pending)):
            files = dict(self.durable)
            self._apply(files, [change for change, keep in zip(self.pending, kept, strict=True) if keep])
            outcomes.append({name: content[0] for name, content in files.items()})
        return outcomes

    def _content(self, path: Path, place: int, data: bytes) -> None:
        file = self._files().get(self._name(path))
        if file is None:
            self.pending.append((self._name(path), [data]))
        else:
            file[0] = file[0][:place] + data
        self._note()

    def _change(self, path: Path, file: list[bytes] | None) -> None:
        self.pending.append((self._name(path), file))
        self._note()

    def _files(self) -> dict[str, list[bytes]]:
        files = dict(self.durable)
        self._apply(files, self.pending)
        return files

    def _apply(self, files: dict[str, list[bytes]], changes) -> None:
        for name, file in changes:
            files.pop(name, None)
            if file is not None:
                files[name] = file

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def _note(self) -> None:
        self.cuts.append(self.left())


@pytest.fixture
def disks() -> SimpleNamespace:
    """Return the kinds of disk, and what a dying process raises."""
    return SimpleNamespace(Death=Death, Struck=StruckDisk, Forgetful=ForgetfulDisk)


@pytest.fixture
def materialize(tmp_path: Path) -> Iterator[Callable[[dict[str, bytes]], Path]]:
    """Return what makes a folder of files."""
    made = 0

    def make(files: dict[str, bytes]) -> Path:
        nonlocal made
        made += 1
        root = tmp_path / f"after cut {made}"
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (root / "partitions").mkdir(parents=True, exist_ok=True)
        (root / "lock").touch()
        return root

    return make
