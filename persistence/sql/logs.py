"""The logs: entries that appear in the order of their positions.

A position is taken by moving the log's head, whose row lock lasts until the transaction ends. So entries of a lower position
are committed before a higher one is given out, and a reader that goes on from a position never misses an entry. Heads are
locked last and in one order, so that writers wait for each other as shortly as can be, and never in a circle.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from persistence.contract import LogEntry
from persistence.errors import PersistenceError
from persistence.sql.dialects import Dialect
from persistence.sql.tables import Tables, key_bytes

__all__ = ["LOG_ENTRY_LIMIT", "LOG_LIMIT", "Appended", "LogTables", "appended"]

LOG_LIMIT = 640_000
"""Entries that a log keeps, about; older ones go."""
LOG_ENTRY_LIMIT = 1024 * 1024
"""Bytes that one entry may have."""
_SLACK = 8
"""A log is cut each time it has grown by this part of its limit."""

Appended = dict[bytes, list[bytes]]
"""Entries by their log, in the order of the logs' names."""


class LogTables:
    """The tables ``workflow_log`` and ``workflow_log_head``."""

    def __init__(self, tables: Tables, dialect: Dialect, *, limit: int) -> None:
        self._log = tables.log
        self._head = tables.log_head
        self._advance = dialect.advance(tables.log_head, returning=False)
        self._advance_and_tell = dialect.advance(tables.log_head, returning=True)
        self._limit = limit

    def append(self, connection: Connection, entries: Appended) -> None:
        """Write entries behind all that their logs hold."""
        for log, data in entries.items():
            last = self._moved(connection, log, len(data))
            first = last - len(data) + 1
            rows = [{"log": log, "position": position, "data": entry} for position, entry in enumerate(data, first)]
            connection.execute(insert(self._log), rows)
            self._cut(connection, log, first, last)

    def read(self, connection: Connection, log: bytes, after: int, limit: int) -> list[LogEntry]:
        """Entries behind a position."""
        columns = self._log.c
        query = select(columns.position, columns.data).where(columns.log == log, columns.position > after)
        rows = connection.execute(query.order_by(columns.position).limit(limit))
        return [LogEntry(str(row.position), bytes(row.data)) for row in rows]

    def _moved(self, connection: Connection, log: bytes, count: int) -> int:
        row = {"log": log, "position": count}
        if connection.dialect.insert_returning:
            return connection.execute(self._advance_and_tell, row).scalar_one()
        connection.execute(self._advance, row)
        return connection.execute(select(self._head.c.position).where(self._head.c.log == log)).scalar_one()

    def _cut(self, connection: Connection, log: bytes, first: int, last: int) -> None:
        step = max(1, self._limit // _SLACK)
        if last > self._limit and (first - 1) // step != last // step:
            columns = self._log.c
            connection.execute(delete(self._log).where(columns.log == log, columns.position <= last - self._limit))


def appended(append: Sequence[tuple[str, bytes]]) -> Appended:
    """Entries as they are written. Raises `PersistenceError` for a name or an entry that is too long, before anything is."""
    entries: Appended = {}
    for name, data in append:
        if len(data) > LOG_ENTRY_LIMIT:
            raise PersistenceError(
                f"an entry for the log {name!r} has {len(data)} bytes, and 1048576 bytes fit: shorten it; nothing was written"
            )
        entries.setdefault(key_bytes("the log", name), []).append(data)
    return dict(sorted(entries.items()))
