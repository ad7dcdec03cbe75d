"""The index entries: one row for each partition, and indexes that lead to what is due and to each value."""

from typing import Any

from sqlalchemy import Connection, Row, delete, select

from persistence.contract import IndexEntry
from persistence.errors import PersistenceError
from persistence.sql.dialects import Dialect
from persistence.sql.tables import Tables, key_bytes

__all__ = ["SUMMARY_LIMIT", "EntryRow", "IndexTable", "entry_row"]

SUMMARY_LIMIT = 65_535
"""Bytes that a summary may have."""
_LAST = 1.7976931348623157e308
"""The last moment that a due time can name; databases differ in whether they know infinity."""

EntryRow = dict[str, Any]


class IndexTable:
    """The table ``workflow_index``."""

    def __init__(self, tables: Tables, dialect: Dialect) -> None:
        self._table = tables.index
        self._upsert = dialect.upsert(tables.index, ["due", "name", "status", "tag", "summary", "awaits"])

    def set(self, connection: Connection, row: EntryRow) -> None:
        """Insert or replace an entry."""
        connection.execute(self._upsert, row)

    def forget(self, connection: Connection, partition: bytes) -> None:
        """Delete the entry of a partition."""
        connection.execute(delete(self._table).where(self._table.c.partition == partition))

    def entry(self, connection: Connection, partition: bytes) -> IndexEntry | None:
        """The entry of a partition."""
        row = connection.execute(select(self._table).where(self._table.c.partition == partition)).first()
        return None if row is None else _entry(row)

    def due(self, connection: Connection, before: float, limit: int) -> list[IndexEntry]:
        """See `Persistence.due`."""
        columns = self._table.c
        moment = max(min(before, _LAST), -_LAST)
        rows = connection.execute(
            select(self._table).where(columns.due <= moment).order_by(columns.due, columns.partition).limit(limit)
        )
        # Where `before` is infinitely early, the earliest moment is not due either.
        return [_entry(row) for row in rows if row.due <= before]

    def find(
        self,
        connection: Connection,
        wanted: dict[str, bytes],
        limit: int,
        behind: bytes | None,
    ) -> list[IndexEntry]:
        """Entries whose columns have the wanted values, in the order of their partitions."""
        columns = self._table.c
        query = select(self._table).where(*(columns[name] == value for name, value in wanted.items()))
        if behind is not None:
            query = query.where(columns.partition > behind)
        return [_entry(row) for row in connection.execute(query.order_by(columns.partition).limit(limit))]


def entry_row(partition: str, index: IndexEntry | None) -> EntryRow | None:
    """The row of an entry. Raises ValueError for another partition's, `PersistenceError` for one that is too long."""
    if index is None:
        return None
    index.require_partition(partition)
    summary = index.summary.encode()
    if len(summary) > SUMMARY_LIMIT:
        raise PersistenceError(f"the summary of {partition!r} has {len(summary)} bytes, and 65535 bytes fit: shorten it")
    return {
        "partition": key_bytes("the partition", partition),
        "due": None if index.due is None else float(index.due),
        "name": key_bytes("the name", index.name),
        "status": key_bytes("the status", index.status),
        "tag": None if index.tag is None else key_bytes("the tag", index.tag),
        "summary": summary,
        "awaits": None if index.awaits is None else key_bytes("the awaited event", index.awaits),
    }


def _entry(row: Row[Any]) -> IndexEntry:
    tag, awaits = (None if word is None else word.decode() for word in (row.tag, row.awaits))
    name, status, summary = (text.decode() for text in (row.name, row.status, row.summary))
    return IndexEntry(row.partition.decode(), row.due, name, status, tag, summary, awaits)
