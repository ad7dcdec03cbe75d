"""A store in the memory of one process: the default, and the measure for the others. Lost with the process."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from persistence.contract import DEFAULT_LIMIT, IndexEntry, LogEntry
from persistence.text import require_place, require_text

__all__ = ["InMemoryPersistence"]


class InMemoryPersistence:
    """`Persistence` in dictionaries under one lock. One object may serve many definitions and threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._partitions: dict[str, dict[str, bytes]] = {}
        self._index: dict[str, IndexEntry] = {}
        self._logs: defaultdict[str, list[bytes]] = defaultdict(list)

    def get(self, partition: str, key: str) -> bytes | None:
        """See `Persistence.get`."""
        require_place(partition, key)
        with self._lock:
            return self._partitions.get(partition, {}).get(key)

    def load(self, partition: str) -> dict[str, bytes]:
        """See `Persistence.load`."""
        require_place(partition)
        with self._lock:
            return dict(self._partitions.get(partition, {}))

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
        with self._lock:
            if condition_key in self._partitions.get(partition, {}):
                return False
            self._apply(partition, {**(records or {}), condition_key: initial_value}, (), index, append)
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
        gone = tuple(delete)
        require_place(partition, condition_key, *records, *gone, append=append)
        if index is not None:
            index.require_partition(partition)
        with self._lock:
            if self._partitions.get(partition, {}).get(condition_key) != expected_value:
                return False
            self._apply(partition, records, gone, index, append)
            return True

    def delete_if_unchanged(
        self, partition: str, condition_key: str, expected_value: bytes, append: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """See `Persistence.delete_if_unchanged`."""
        require_place(partition, condition_key, append=append)
        with self._lock:
            if self._partitions.get(partition, {}).get(condition_key) != expected_value:
                return False
            del self._partitions[partition]
            self._index.pop(partition, None)
            self._append(append)
            return True

    def entry(self, partition: str) -> IndexEntry | None:
        """See `Persistence.entry`."""
        require_place(partition)
        with self._lock:
            return self._index.get(partition)

    def due(self, before: float, limit: int = DEFAULT_LIMIT) -> list[IndexEntry]:
        """See `Persistence.due`."""
        with self._lock:
            found = [(entry.due, entry) for entry in self._index.values() if entry.due is not None and entry.due <= before]
        return [entry for _, entry in sorted(found, key=lambda pair: pair[0])][:limit]

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
        """See `Persistence.find`."""
        require_text("the value", name, status, tag, awaits)
        behind = after.partition.encode() if after else None
        with self._lock:
            found = [entry for entry in self._index.values() if entry.matches(name, status, tag, awaits)]
        ordered = sorted((entry.partition.encode(), entry) for entry in found)
        return [entry for place, entry in ordered if behind is None or place > behind][:limit]

    def read_log(self, name: str, after: str | None = None, limit: int = DEFAULT_LIMIT) -> list[LogEntry]:
        """See `Persistence.read_log`."""
        require_text("the log", name)
        start = _place(after) if after is not None else 0
        with self._lock:
            entries = self._logs.get(name, [])[start : start + limit]
        return [LogEntry(str(place), data) for place, data in enumerate(entries, start + 1)]

    def _apply(
        self,
        partition: str,
        records: Mapping[str, bytes],
        delete: Iterable[str],
        index: IndexEntry | None,
        append: Sequence[tuple[str, bytes]],
    ) -> None:
        held = self._partitions.setdefault(partition, {})
        for key in delete:
            held.pop(key, None)
        held.update(records)
        if index is not None:
            self._index[partition] = index
        self._append(append)

    def _append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        for name, data in entries:
            self._logs[name].append(data)


def _place(position: str) -> int:
    if not position.isdecimal():
        raise ValueError(f"{position!r} is not a position of this log: hand back one that read_log gave")
    return int(position)
