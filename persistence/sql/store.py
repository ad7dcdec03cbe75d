"""`Persistence` in an SQL database (tables: `persistence.sql.tables`): each intent one transaction, each read one statement.

The condition's row is locked first, its bytes are compared here, and only then is anything written, so that fences are exact at
every isolation level. After a lost reply to COMMIT the repeated transaction finds out what became of the first: it counts as
success exactly when the condition holds the bytes that this call would have written.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import finalize

from sqlalchemy import URL, Connection, Engine

from persistence.contract import DEFAULT_LIMIT, IndexEntry, LogEntry
from persistence.errors import PersistenceError
from persistence.sql.address import check_engine, open_engine
from persistence.sql.dialects import dialect_of
from persistence.sql.index import IndexTable, entry_row
from persistence.sql.link import RETRY_DELAYS, EngineLink, JoinedLink, Link
from persistence.sql.logs import LOG_LIMIT, LogTables, appended
from persistence.sql.records import Records, TableRecords
from persistence.sql.schema import create_tables
from persistence.sql.tables import DEFAULT_PREFIX, KEY_LIMIT, Tables, key_bytes
from persistence.text import require_place, require_text

__all__ = ["SqlPersistence"]


class SqlPersistence:
    """The store in one database: SQLite, PostgreSQL, MariaDB or MySQL.

    Given a URL it makes an engine of its own; given an engine it takes a connection from it for each call. Given a
    `Connection` it joins the caller's transaction: each call is a savepoint, nothing is committed, and all calls come from
    one thread, so that leases cannot be renewed meanwhile (set ``lease_renewal=False``). ``prefix`` keeps several stores
    apart; ``records`` puts records elsewhere than in our own table (`persistence.sql.mapped`).
    """

    def __init__(
        self,
        engine_or_url: Engine | Connection | URL | str,
        prefix: str = DEFAULT_PREFIX,
        *,
        records: Records | None = None,
        log_limit: int = LOG_LIMIT,
        retry_delays: Sequence[float] = RETRY_DELAYS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tables = Tables(prefix)
        self.joined = isinstance(engine_or_url, Connection)
        if isinstance(engine_or_url, Connection):
            engine = engine_or_url.engine
            self._link: Link = JoinedLink(engine_or_url, self._tables)
        else:
            engine = _engine(engine_or_url)
            self._link = EngineLink(engine, self._tables, retry_delays=retry_delays, sleep=sleep)
        self._owned = engine if isinstance(engine_or_url, str | URL) else None
        if self._owned:
            # Nobody else can close these connections; left to the garbage collector, each would be warned of.
            finalize(self, self._owned.dispose)
        dialect = dialect_of(engine)
        self._records = records or TableRecords(self._tables, dialect)
        self._index = IndexTable(self._tables, dialect)
        self._logs = LogTables(self._tables, dialect, limit=log_limit)

    def close(self) -> None:
        """Close the connections of the engine that was made for a URL; another's engine is left alone."""
        if self._owned:
            self._owned.dispose()

    def create_schema(self) -> None:
        """Make the tables that are missing. May be called at every start, by many processes at once."""
        self._link.create_schema(lambda connection: create_tables(connection, self._tables))

    def get(self, partition: str, key: str) -> bytes | None:
        """See `Persistence.get`."""
        require_place(partition, key)
        place, name = partition.encode(), key.encode()
        if not _fits(place, name):
            return None
        return self._link.read(lambda connection: self._records.load(connection, place, name)).get(name)

    def load(self, partition: str) -> dict[str, bytes]:
        """See `Persistence.load`."""
        require_place(partition)
        place = partition.encode()
        if not _fits(place):
            return {}
        held = self._link.read(lambda connection: self._records.load(connection, place))
        return {key.decode(): value for key, value in held.items()}

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
        place, condition = key_bytes("the partition", partition), key_bytes("the key", condition_key)
        others = {key: value for key, value in _rows(records or {}).items() if key != condition}
        entry, entries = entry_row(partition, index), appended(append)

        def act(connection: Connection, uncertain: bool) -> bool:
            if not self._records.create(connection, place, condition, initial_value):
                return uncertain and self._records.load(connection, place, condition).get(condition) == initial_value
            self._records.write(connection, place, others)
            if entry:
                self._index.set(connection, entry)
            self._logs.append(connection, entries)
            return True

        return self._link.change(act)

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
        deleted = tuple(delete)
        require_place(partition, condition_key, *records, *deleted, append=append)
        place, condition = key_bytes("the partition", partition), key_bytes("the key", condition_key)
        written, gone = _rows(records), [key_bytes("the key", key) for key in deleted if key not in records]
        entry, entries = entry_row(partition, index), appended(append)
        if not (written or gone or entry or entries):
            return self.get(partition, condition_key) == expected_value
        left = written.get(condition, None if condition in gone else expected_value)

        def act(connection: Connection, uncertain: bool) -> bool:
            held = self._records.lock(connection, place, condition)
            if uncertain and left != expected_value and left == (held.value if held else None):
                return True
            if held is None or held.value != expected_value:
                return False
            if gone:
                self._records.remove(connection, place, gone, held)
            self._records.write(connection, place, written, held)
            if entry:
                self._index.set(connection, entry)
            self._logs.append(connection, entries)
            return True

        # Under an unchanged condition a repeated transaction would append once more.
        return self._link.change(act, repeatable=not entries or left != expected_value)

    def delete_if_unchanged(
        self, partition: str, condition_key: str, expected_value: bytes, append: Sequence[tuple[str, bytes]] = ()
    ) -> bool:
        """See `Persistence.delete_if_unchanged`. After a lost reply, a partition that is gone is success."""
        require_place(partition, condition_key, append=append)
        place, condition = key_bytes("the partition", partition), key_bytes("the key", condition_key)
        entries = appended(append)

        def act(connection: Connection, uncertain: bool) -> bool:
            held = self._records.lock(connection, place, condition)
            if held is None or held.value != expected_value:
                return uncertain and held is None
            self._records.clear(connection, place, held)
            self._index.forget(connection, place)
            self._logs.append(connection, entries)
            return True

        return self._link.change(act)

    def entry(self, partition: str) -> IndexEntry | None:
        """See `Persistence.entry`."""
        require_place(partition)
        place = partition.encode()
        return self._link.read(lambda connection: self._index.entry(connection, place)) if _fits(place) else None

    def due(self, before: float, limit: int = DEFAULT_LIMIT) -> list[IndexEntry]:
        """See `Persistence.due`."""
        return self._link.read(lambda connection: self._index.due(connection, before, limit))

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
        asked = {"name": name, "status": status, "tag": tag, "awaits": awaits}
        wanted = {column: value.encode() for column, value in asked.items() if value is not None}
        if not _fits(*wanted.values()):
            return []
        behind = after.partition.encode() if after else None
        return self._link.read(lambda connection: self._index.find(connection, wanted, limit, behind))

    def read_log(self, name: str, after: str | None = None, limit: int = DEFAULT_LIMIT) -> list[LogEntry]:
        """See `Persistence.read_log`. The position is a number."""
        require_text("the log", name)
        place, log = _place(after) if after is not None else 0, name.encode()
        return self._link.read(lambda connection: self._logs.read(connection, log, place, limit)) if _fits(log) else []


def _engine(engine_or_url: Engine | URL | str) -> Engine:
    if isinstance(engine_or_url, str | URL):
        return open_engine(engine_or_url)
    if not isinstance(engine_or_url, Engine):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
        raise PersistenceError(f"a {type(engine_or_url).__name__} cannot serve as the database: hand in an Engine or a URL")
    check_engine(engine_or_url)
    return engine_or_url


def _fits(*names: bytes) -> bool:
    """What is longer than a column was never written."""
    return all(len(name) <= KEY_LIMIT for name in names)


def _rows(records: Mapping[str, bytes]) -> dict[bytes, bytes]:
    return {key_bytes("the key", key): bytes(value) for key, value in records.items()}


def _place(position: str) -> int:
    if not (position.isascii() and position.isdecimal() and len(position) < 19):
        raise ValueError(f"{position!r} is not a position of this log: hand back one that read_log gave")
    return int(position)
