"""What the databases say differently: how a transaction begins, an insert that may meet a row, a lock on the schema."""

from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import BigInteger, Connection, Engine, Executable, Table, insert, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

__all__ = ["NAMES", "Dialect", "dialect_of"]

NAMES = {"sqlite": "pysqlite", "postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
"""The databases, and the driver through which each is used."""


class Dialect(Protocol):
    """One database's ways."""

    begin: str
    """Begins a transaction that will write."""
    prepare: str | None
    """Before the tables are made, outside a transaction: how the database keeps its file."""
    lock_schema: str | None
    """Within a transaction: lets one process at a time create tables, where `begin` does not do that."""
    unlock_schema: str | None
    """Lets the next one, where the end of the transaction does not."""
    commits_by_itself: bool
    """Whether creating a table ends the transaction around it."""
    deletes_together: bool
    """Whether one statement deletes from two tables, and so needs no look beforehand whether the second one holds anything."""
    settings: str | None
    """What is set on each connection of an engine of our own: no wait for a lock outlasts some seconds."""

    def create(self, connection: Connection, table: Table, row: dict[str, Any]) -> bool:
        """Insert a row unless its key is there; waits for whoever is inserting the same one."""
        ...

    def upsert(self, table: Table, replace: Sequence[str], *, now: str | None = None) -> Executable:
        """Insert rows; where one is there, replace these columns, and set the column ``now`` to the time."""
        ...

    def advance(self, table: Table, returning: bool) -> Executable:
        """Insert a head of a log, or add to its position; returns the position where the database can."""
        ...


class _OnConflict:
    """SQLite and PostgreSQL: ``INSERT … ON CONFLICT``."""

    unlock_schema: str | None = None
    commits_by_itself: bool = False

    def __init__(
        self,
        insert_into: Any,
        begin: str,
        *,
        prepare: str | None = None,
        lock_schema: str | None = None,
        deletes_together: bool = False,
        settings: str | None = None,
    ) -> None:
        self._insert = insert_into
        self.begin = begin
        self.prepare = prepare
        self.lock_schema = lock_schema
        self.deletes_together = deletes_together
        self.settings = settings

    def create(self, connection: Connection, table: Table, row: dict[str, Any]) -> bool:
        statement = self._insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
        return connection.execute(statement, row).rowcount == 1

    def upsert(self, table: Table, replace: Sequence[str], *, now: str | None = None) -> Executable:
        statement = self._insert(table)
        changes: dict[str, Any] = {column: statement.excluded[column] for column in replace}
        if now:
            changes[now] = text("CURRENT_TIMESTAMP")
        return statement.on_conflict_do_update(index_elements=list(table.primary_key.columns), set_=changes)

    def advance(self, table: Table, returning: bool) -> Executable:
        statement = self._insert(table)
        moved = {"position": table.c.position + statement.excluded.position}
        statement = statement.on_conflict_do_update(index_elements=[table.c.log], set_=moved)
        return statement.returning(table.c.position) if returning else statement


class _OnDuplicateKey:
    """MariaDB and MySQL: ``INSERT … ON DUPLICATE KEY UPDATE``, in the one wording that both of them and the driver's way of
    sending many rows in one statement understand.
    """

    begin: str = "START TRANSACTION"
    prepare: str | None = None
    lock_schema: str | None = "SELECT GET_LOCK('jarvis_create_schema', 30)"
    unlock_schema: str | None = "SELECT RELEASE_LOCK('jarvis_create_schema')"
    commits_by_itself: bool = True
    deletes_together: bool = False
    settings: str | None = "SET SESSION innodb_lock_wait_timeout = 5"

    def create(self, connection: Connection, table: Table, row: dict[str, Any]) -> bool:
        # Not INSERT IGNORE, which would also ignore a value that does not fit.
        try:
            connection.execute(insert(table), row)
        except IntegrityError as met:
            if getattr(met.orig, "args", (None,))[0] == _DUPLICATE_KEY:
                return False
            raise
        return True

    def upsert(self, table: Table, replace: Sequence[str], *, now: str | None = None) -> Executable:
        columns = [*(column.name for column in table.primary_key.columns), *replace]
        changes = [f"`{column}` = VALUES(`{column}`)" for column in replace]
        if now:
            changes.append(f"`{now}` = CURRENT_TIMESTAMP")
        return text(f"{_insert_into(table, columns)} ON DUPLICATE KEY UPDATE {', '.join(changes)}")

    def advance(self, table: Table, returning: bool) -> Executable:
        moved = f"{_insert_into(table, ['log', 'position'])} ON DUPLICATE KEY UPDATE position = position + VALUES(position)"
        return text(f"{moved} RETURNING position").columns(position=BigInteger) if returning else text(moved)


_DUPLICATE_KEY = 1062


def _insert_into(table: Table, columns: Sequence[str]) -> str:
    names, values = ", ".join(f"`{column}`" for column in columns), ", ".join(f":{column}" for column in columns)
    return f"INSERT INTO `{table.name}` ({names}) VALUES ({values})"  # noqa: S608 - names of our own columns


def dialect_of(engine: Engine) -> Dialect:
    """The ways of this engine's database, one of `NAMES`."""
    if engine.dialect.name == "sqlite":
        return _OnConflict(sqlite.insert, "BEGIN IMMEDIATE", prepare="PRAGMA journal_mode = WAL")
    if engine.dialect.name == "postgresql":
        lock = "SELECT pg_advisory_xact_lock(7390861201)"
        # A client that vanished in the middle must not hold its row locks for ever.
        settings = "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '30s'"
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"
        return _OnConflict(postgresql.insert, begin, lock_schema=lock, deletes_together=True, settings=settings)
    return _OnDuplicateKey()
