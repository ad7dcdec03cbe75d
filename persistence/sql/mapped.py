"""Records in a mapped class that a project owns: its own primary key, its own further columns, its own session events.

The events of the session and of the mapper fire inside the transaction of the write; one that raises undoes it. Index, logs
and the version stay in the store's own tables.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, UniqueConstraint, inspect, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, Session, mapped_column, sessionmaker

from persistence.errors import PersistenceError
from persistence.sql.records import Held
from persistence.sql.tables import KEY_TYPE, VALUE_TYPE

__all__ = ["MappedRecords", "RecordColumns"]

_BATCH = 500
"""Rows in one statement."""


class RecordColumns:
    """A mixin with the three columns that the store reads and writes; the class adds its key and a unique constraint."""

    partition: Mapped[bytes] = mapped_column(KEY_TYPE, nullable=False)
    key: Mapped[bytes] = mapped_column(KEY_TYPE, nullable=False)
    value: Mapped[bytes] = mapped_column(VALUE_TYPE, nullable=False)


class MappedRecords:
    """`persistence.sql.records.Records` in instances of a mapped class.

    ``sessions`` makes the sessions whose events are to fire. Raises `PersistenceError` for a class without the columns of
    `RecordColumns` or without a unique constraint on exactly partition and key.
    """

    def __init__(self, model: type[RecordColumns], sessions: sessionmaker[Any] | None = None) -> None:
        _require_unique(model)
        self._model = model
        self._sessions = sessions or sessionmaker()

    def load(self, connection: Connection, partition: bytes, key: bytes | None = None) -> dict[bytes, bytes]:
        """See `Records.load`."""
        model = self._model
        query = select(model.key, model.value).where(model.partition == partition)
        rows = connection.execute(query if key is None else query.where(model.key == key))
        return {row.key: row.value for row in rows}

    def lock(self, connection: Connection, partition: bytes, key: bytes) -> Held | None:
        """See `Records.lock`."""
        model = self._model
        query = select(model.value).where(model.partition == partition, model.key == key).with_for_update()
        row = connection.execute(query).first()
        return None if row is None else Held(row.value)

    def create(self, connection: Connection, partition: bytes, key: bytes, value: bytes) -> bool:
        """See `Records.create`."""
        if self.load(connection, partition, key):
            return False
        try:
            with connection.begin_nested(), self._session(connection) as session:
                session.add(self._made(partition, key, value))
                session.flush()
        except IntegrityError:
            if self.lock(connection, partition, key) is None:
                raise
            return False
        return True

    def write(self, connection: Connection, partition: bytes, records: Mapping[bytes, bytes], held: Held | None = None) -> None:
        """See `Records.write`."""
        if not records:
            return
        with self._session(connection) as session:
            there = {row.key: row for row in self._rows(session, partition, list(records))}
            for key, value in records.items():
                if key in there:
                    there[key].value = value
                else:
                    session.add(self._made(partition, key, value))
            session.flush()

    def remove(self, connection: Connection, partition: bytes, keys: Sequence[bytes], held: Held) -> None:
        """See `Records.remove`."""
        with self._session(connection) as session:
            for row in self._rows(session, partition, keys):
                session.delete(row)
            session.flush()

    def clear(self, connection: Connection, partition: bytes, held: Held) -> None:
        """See `Records.clear`."""
        with self._session(connection) as session:
            for row in session.scalars(select(self._model).where(self._model.partition == partition)):
                session.delete(row)
            session.flush()

    def _session(self, connection: Connection) -> Session:
        """A session on our connection, whose end neither commits nor rolls back."""
        return self._sessions(bind=connection, join_transaction_mode="rollback_only", autoflush=False)

    def _rows(self, session: Session, partition: bytes, keys: Sequence[bytes]) -> list[RecordColumns]:
        model = self._model
        rows: list[RecordColumns] = []
        for first in range(0, len(keys), _BATCH):
            batch = model.key.in_(keys[first : first + _BATCH])
            rows += session.scalars(select(model).where(model.partition == partition, batch).with_for_update())
        return rows

    def _made(self, partition: bytes, key: bytes, value: bytes) -> RecordColumns:
        made = self._model()
        made.partition, made.key, made.value = partition, key, value
        return made


def _require_unique(model: type[RecordColumns]) -> None:
    table: Any = inspect(model).local_table
    if not {"partition", "key", "value"} <= set(table.c.keys()):
        raise PersistenceError(f"{model.__name__} lacks a column: derive it from persistence.sql.RecordColumns")
    if not any(set(names) == {"partition", "key"} for names in _unique_columns(table)):
        raise PersistenceError(
            f"nothing keeps two records of {model.__name__} apart: add UniqueConstraint('partition', 'key') to its table"
        )


def _unique_columns(table: Table) -> list[list[str]]:
    constraints = [constraint for constraint in table.constraints if isinstance(constraint, UniqueConstraint)]
    indexes = [index for index in table.indexes if index.unique]
    return [list(table.primary_key.columns.keys()), *(list(kept.columns.keys()) for kept in (*constraints, *indexes))]
