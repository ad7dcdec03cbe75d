"""`Persistence` in a directory: one file for each partition, with its index entry in it.

name                          content                                                      changed by
lock                          nothing: held while the store is changed or listed, or a log is read
new                           the file that is about to take a partition's place           all three intents
partitions/<name>.store       one partition (`persistence.file.partition`)                 all three intents
logs/<name>/<number>.log      one segment of a log (`persistence.file.logs`)               all three intents
undo, undo.new                how to take back the appends of a write that did not end     intents that append

A write makes the new file, and then puts it in the place of the old one at one moment: that moment decides. Readers of
records need no lock. `due` and `find` read the first line of every partition: their time grows with their number.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar
from uuid import uuid4

from persistence.contract import DEFAULT_LIMIT, IndexEntry, LogEntry
from persistence.errors import PersistenceError, UnreachableError
from persistence.file.advice import failure
from persistence.file.disk import Disk
from persistence.file.lock import locked
from persistence.file.logs import Addition, LogFiles
from persistence.file.names import file_name
from persistence.file.partition import Head, PartitionFile, read_head, read_partition
from persistence.file.undo import Undo
from persistence.text import require_place, require_text

__all__ = ["LOG_LIMIT", "FilePersistence"]

LOG_LIMIT = 100_000
"""Entries that a log keeps at least; when it has twice as many, the older half goes."""

SUFFIX = ".store"

ReadT = TypeVar("ReadT", Head, PartitionFile)


class FilePersistence:
    """The store in one directory, made at the first write. Processes of one machine may share it; it needs a local disk."""

    def __init__(self, directory: str | Path, *, log_limit: int = LOG_LIMIT, disk: Disk | None = None) -> None:
        self._root = Path(directory).absolute()
        self._lock = self._root / "lock"
        self._new = self._root / "new"
        self._note = self._root / "undo.new"
        self._undo = self._root / "undo"
        self._partitions = self._root / "partitions"
        self._logs = self._root / "logs"
        self._log_limit = log_limit
        self._disk = disk or Disk()

    def get(self, partition: str, key: str) -> bytes | None:
        """See `Persistence.get`."""
        require_place(partition, key)
        return self.load(partition).get(key)

    def load(self, partition: str) -> dict[str, bytes]:
        """See `Persistence.load`."""
        require_place(partition)
        with self._words():
            found = self._read(partition)
        return found.records if found else {}

    def initialize_if_absent(
        self,
        partition: str,
        condition_key: str,
        initial_value: bytes,
        records: Mapping[str, bytes] | None = None,
        index: IndexEntry | None = None,
        append: Sequence[tuple[str, bytes]] = (),
    ) -> bool:
        """See `Persistence.initialize_if_absent`."""
        require_place(partition, condition_key, *(records or {}), append=append)
        if index is not None:
            index.require_partition(partition)
        with self._changing():
            before = self._read(partition)
            if before is not None and condition_key in before.records:
                return False
            self._write(partition, before, {**(records or {}), condition_key: initial_value}, (), index, append)
            return True

    def write_if_unchanged(
        self,
        partition: str,
        condition_key: str,
        expected_value: bytes,
        records: Mapping[str, bytes],
        delete: Iterable[str] = (),
        index: IndexEntry | None = None,
        append: Sequence[tuple[str, bytes]] = (),
    ) -> bool:
        """See `Persistence.write_if_unchanged`."""
        if index is not None:
            index.require_partition(partition)
        gone = tuple(delete)
        require_place(partition, condition_key, *records, *gone, append=append)
        if not self._has(partition):
            return False
        with self._changing():
            before = self._read(partition)
            if before is None or before.records.get(condition_key) != expected_value:
                return False
            if records or gone or index is not None or append:
                self._write(partition, before, records, gone, index, append)
            return True

    def delete_if_unchanged(
        self, partition: str, condition_key: str, expected_value: bytes, append: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """See `Persistence.delete_if_unchanged`."""
        require_place(partition, condition_key, append=append)
        if not self._has(partition):
            return False
        with self._changing():
            before = self._read(partition)
            if before is None or before.records.get(condition_key) != expected_value:
                return False
            self._commit(partition, None, append)
            return True

    def entry(self, partition: str) -> IndexEntry | None:
        """See `Persistence.entry`."""
        require_place(partition)
        with self._words():
            head = self._read_file(self._path(partition), read_head)
        return head.index if head else None

    def due(self, before: float, limit: int = DEFAULT_LIMIT) -> list[IndexEntry]:
        """See `Persistence.due`. Reads the first line of every partition."""
        entries = self._entries()
        found = [(entry.due, place, entry) for place, entry in entries if entry.due is not None and entry.due <= before]
        return [entry for *_, entry in sorted(found, key=lambda each: each[:2])[:limit]]

    def find(
        self,
        *,
        name: str | None = None,
        status: str | None = None,
        tag: str | None = None,
        awaits: str | None = None,
        limit: int = DEFAULT_LIMIT,
        after: IndexEntry | None = None,
    ) -> list[IndexEntry]:
        """See `Persistence.find`. Reads the first line of every partition."""
        require_text("the value", name, status, tag, awaits)
        behind = after.partition.encode() if after else None
        found = [(place, entry) for place, entry in self._entries() if entry.matches(name, status, tag, awaits)]
        ordered = sorted(found, key=lambda each: each[0])
        return [entry for place, entry in ordered if behind is None or place > behind][:limit]

    def read_log(self, name: str, after: str | None = None, limit: int = DEFAULT_LIMIT) -> list[LogEntry]:
        """See `Persistence.read_log`."""
        require_text("the log", name)
        with self._words():
            if not _exists(self._logs):
                return []
            with self._held_still():
                self._recover()
                return self._log(name).read(after, limit)

    # --- reading ------------------------------------------------------------------------------------------------------------

    def _has(self, partition: str) -> bool:
        with self._words():
            return _exists(self._path(partition))

    def _read(self, partition: str) -> PartitionFile | None:
        return self._read_file(self._path(partition), read_partition)

    def _read_file(self, path: Path, read: Callable[[BinaryIO], ReadT]) -> ReadT | None:
        """What a partition's file holds, or None when there is no such file. Raises `PersistenceError` when it is damaged."""
        try:
            with path.open("rb") as file:
                found = read(file)
        except FileNotFoundError:
            return None
        except PersistenceError as trouble:
            raise PersistenceError(f"the file {str(path)!r} {trouble}") from trouble
        head = found if isinstance(found, Head) else found.head
        if path.name != file_name(head.partition) + SUFFIX:
            raise PersistenceError(
                f"the file {str(path)!r} holds partition {head.partition!r}, which has another name: restore it from a backup"
            )
        return found

    def _entries(self) -> list[tuple[bytes, IndexEntry]]:
        """Every index entry, with the bytes of its partition."""
        with self._words():
            if not _exists(self._partitions):
                return []
            # A folder that is listed while files in it are replaced may show one of them not at all, or twice.
            with self._held_still():
                paths = [path for path in self._partitions.iterdir() if path.name.endswith(SUFFIX)]
            # One that has gone meanwhile is left out.
            heads = [head for path in paths if (head := self._read_file(path, read_head))]
        return [(head.partition.encode(), head.index) for head in heads if head.index is not None]

    def _path(self, partition: str) -> Path:
        return self._partitions / (file_name(partition) + SUFFIX)

    def _log(self, name: str) -> LogFiles:
        return LogFiles(self._logs / file_name(name), self._log_limit)

    def _held_still(self) -> AbstractContextManager[None]:
        """Keep others from changing the store. Who may only read it needs no right to make the lock, unless it was removed."""
        return locked(self._lock, create=not _exists(self._lock))

    # --- writing ------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Be the only one who changes the store, after what a crash has left is put in order."""
        with self._words():
            self._disk.make_folder(self._partitions)
            with locked(self._lock, create=True):
                self._recover()
                yield

    def _write(
        self,
        partition: str,
        before: PartitionFile | None,
        records: Mapping[str, bytes],
        gone: Iterable[str],
        index: IndexEntry | None,
        append: Sequence[tuple[str, bytes]],
    ) -> None:
        held = dict(before.records) if before else {}
        for key in gone:
            held.pop(key, None)
        held.update(records)
        entry = index if index is not None or before is None else before.head.index
        self._commit(partition, PartitionFile(Head(partition, uuid4().hex, entry), held), append)

    def _commit(self, partition: str, file: PartitionFile | None, append: Sequence[tuple[str, bytes]]) -> None:
        """Put a file in the place of the partition's, or remove that, and append to logs: all of it or nothing."""
        additions = self._additions(append)
        try:
            if file is not None:
                self._disk.create(self._new, file.encoded())
            if additions:
                self._append(partition, file, additions)
            if file is not None:
                self._disk.move(self._new, self._path(partition))
            else:
                self._disk.remove(self._path(partition))
        except BaseException:
            self._take_back()
            raise
        self._finish(additions)

    def _additions(self, append: Sequence[tuple[str, bytes]]) -> list[Addition]:
        entries: dict[str, list[bytes]] = {}
        for name, data in append:
            entries.setdefault(name, []).append(data)
        return [self._log(name).addition(data) for name, data in entries.items()]

    def _append(self, partition: str, file: PartitionFile | None, additions: list[Addition]) -> None:
        """Append, after a note is durable that says how to take it back."""
        lengths = tuple((str(each.path.relative_to(self._root)), each.length) for each in additions)
        self._disk.create(self._note, Undo(partition, file.head.token if file else None, lengths).encoded())
        self._disk.move(self._note, self._undo)
        self._disk.settle(self._root)
        for each in additions:
            self._disk.make_folder(each.path.parent)
            self._disk.append(each.path, each.length, each.data)
            if not each.length:
                self._disk.settle(each.path.parent)

    def _finish(self, additions: list[Addition]) -> None:
        """Make durable what has taken effect. What fails here leaves the caller in doubt, as a lost reply does."""
        try:
            if additions:
                self._recover()
            else:
                self._disk.settle(self._partitions)
        except (OSError, PersistenceError) as trouble:
            words = f"the store at {str(self._root)!r} took a write, but cannot say that it is safe on its disk ({trouble})"
            raise UnreachableError(f"{words}: look at the disk, then read what is there") from trouble
        # Whatever is too old and stays goes with a later write.
        with suppress(OSError):
            for folder in {each.path.parent for each in additions}:
                for path in LogFiles(folder, self._log_limit).outdated():
                    self._disk.remove(path)

    def _take_back(self) -> None:
        """Leave nothing of a write that failed. Where even that fails, whoever writes next does it."""
        with suppress(OSError, PersistenceError):
            self._recover()
        for half_done in (self._new, self._note):
            with suppress(OSError):
                self._disk.remove(half_done)

    def _recover(self) -> None:
        """Settle the last write that also appended, if it has not ended: either all of it is there, or nothing."""
        undo = Undo.read(self._undo)
        if undo is None:
            return
        if self._took_effect(undo):
            self._disk.settle(self._partitions)
        else:
            for name, length in undo.logs:
                self._restore(self._root / name, length)
        self._disk.remove(self._undo)
        self._disk.settle(self._root)

    def _took_effect(self, undo: Undo) -> bool:
        head = self._read_file(self._path(undo.partition), read_head)
        return (head.token if head else None) == undo.token

    def _restore(self, segment: Path, length: int) -> None:
        if not _exists(segment):
            return
        if length:
            self._disk.cut(segment, length)
        else:
            self._disk.remove(segment)
            self._disk.settle(segment.parent)

    @contextmanager
    def _words(self) -> Generator[None]:
        """Turn what the disk refuses into words."""
        try:
            yield
        except OSError as trouble:
            raise failure(trouble.filename or self._root, trouble) from trouble


def _exists(path: Path) -> bool:
    """Whether there is such a file or link; a disk that does not say raises `OSError`."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True
