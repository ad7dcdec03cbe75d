"""The records of a partition, in a table of our own: read, locked, written, all on a connection that is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection, Integer, Row, bindparam, delete, exists, literal_column, select, union_all

from persistence.errors import PersistenceError
from persistence.sql.dialects import Dialect
from persistence.sql.tables import KEY_TYPE, PIECE, Tables

__all__ = ["Held", "Records", "TableRecords"]

_BATCH = 500
"""Keys in one statement."""
_WHOLE = -1
"""Where a row of the store stands among the pieces of its value."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the condition held when it was locked."""

    value: bytes
    has_pieces: bool = False
    """Whether some value of the partition may stand in pieces. PostgreSQL sees that as it was before it waited for the lock."""


class Records(Protocol):
    """Where records are kept. Partition and keys are bytes of at most 255."""

    def load(self, connection: Connection, partition: bytes, key: bytes | None = None) -> dict[bytes, bytes]:
        """All records of a partition, or one, as they stood at one moment."""
        ...

    def lock(self, connection: Connection, partition: bytes, key: bytes) -> Held | None:
        """The value of one record, whose row then stays locked; None when it is absent."""
        ...

    def create(self, connection: Connection, partition: bytes, key: bytes, value: bytes) -> bool:
        """Insert one record unless it is there; waits for whoever is inserting the same one."""
        ...

    def write(self, connection: Connection, partition: bytes, records: Mapping[bytes, bytes], held: Held | None = None) -> None:
        """Insert or replace records."""
        ...

    def remove(self, connection: Connection, partition: bytes, keys: Sequence[bytes], held: Held) -> None:
        """Delete records that may be there."""
        ...

    def clear(self, connection: Connection, partition: bytes, held: Held) -> None:
        """Delete the whole partition."""
        ...


class TableRecords:
    """Records in ``workflow_store``, with large values in ``workflow_pieces``."""

    def __init__(self, tables: Tables, dialect: Dialect) -> None:
        store, pieces = tables.store, tables.pieces
        self._store = store
        self._dialect = dialect
        whole = select(store.c.key, literal_column(str(_WHOLE), Integer).label("piece"), store.c.pieces, store.c.value)
        parts = select(pieces.c.key, pieces.c.piece, literal_column("0", Integer), pieces.c.value)
        of_store, of_pieces = store.c.partition == bindparam("p"), pieces.c.partition == bindparam("p")
        key_of_store, key_of_pieces = store.c.key == bindparam("k"), pieces.c.key == bindparam("k")
        self._load: Any = union_all(whole.where(of_store), parts.where(of_pieces))
        self._get: Any = union_all(whole.where(of_store, key_of_store), parts.where(of_pieces, key_of_pieces))
        any_pieces = exists().where(of_pieces).label("any_pieces")
        self._lock = select(store.c.value, store.c.pieces, any_pieces).where(of_store, key_of_store).with_for_update(of=store)
        self._upsert = dialect.upsert(store, ["value", "pieces"], now="updated_at")
        self._upsert_piece = dialect.upsert(pieces, ["value"])
        some = bindparam("keys", type_=KEY_TYPE, expanding=True)
        self._remove = delete(store).where(of_store, store.c.key.in_(some))
        self._remove_pieces = delete(pieces).where(of_pieces, pieces.c.key.in_(some))
        self._clear_pieces = delete(pieces).where(of_pieces)
        self._clear = delete(store).where(of_store)
        if dialect.deletes_together:
            self._clear = self._clear.add_cte(self._clear_pieces.cte("of_values"))

    def load(self, connection: Connection, partition: bytes, key: bytes | None = None) -> dict[bytes, bytes]:
        """See `Records.load`."""
        if key is None:
            return _assembled(connection.execute(self._load, {"p": partition}).all())
        return _assembled(connection.execute(self._get, {"p": partition, "k": key}).all())

    def lock(self, connection: Connection, partition: bytes, key: bytes) -> Held | None:
        """See `Records.lock`."""
        row = connection.execute(self._lock, {"p": partition, "k": key}).first()
        if row is None:
            return None
        value = self.load(connection, partition, key)[key] if row.pieces else row.value
        return Held(value, bool(row.any_pieces))

    def create(self, connection: Connection, partition: bytes, key: bytes, value: bytes) -> bool:
        """See `Records.create`."""
        row = _Row.of(partition, key, value)
        if not self._dialect.create(connection, self._store, row.columns):
            return False
        self._write_pieces(connection, row.pieces)
        return True

    def write(self, connection: Connection, partition: bytes, records: Mapping[bytes, bytes], held: Held | None = None) -> None:
        """See `Records.write`. Pieces left by an earlier value are never read, since the row counts its own; they are swept."""
        if not records:
            return
        rows = [_Row.of(partition, key, value) for key, value in records.items()]
        connection.execute(self._upsert, [row.columns for row in rows])
        if held and held.has_pieces:
            self._each_batch(connection, self._remove_pieces, partition, list(records))
        self._write_pieces(connection, [piece for row in rows for piece in row.pieces])

    def remove(self, connection: Connection, partition: bytes, keys: Sequence[bytes], held: Held) -> None:
        """See `Records.remove`."""
        self._each_batch(connection, self._remove, partition, keys)
        if held.has_pieces:
            self._each_batch(connection, self._remove_pieces, partition, keys)

    def clear(self, connection: Connection, partition: bytes, held: Held) -> None:
        """See `Records.clear`."""
        connection.execute(self._clear, {"p": partition})
        if held.has_pieces and not self._dialect.deletes_together:
            connection.execute(self._clear_pieces, {"p": partition})

    def _write_pieces(self, connection: Connection, pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            connection.execute(self._upsert_piece, piece)

    def _each_batch(self, connection: Connection, statement: Any, partition: bytes, keys: Sequence[bytes]) -> None:
        for first in range(0, len(keys), _BATCH):
            connection.execute(statement, {"p": partition, "keys": keys[first : first + _BATCH]})


@dataclass(frozen=True, slots=True)
class _Row:
    """A record as it is written."""

    columns: dict[str, Any]
    pieces: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @classmethod
    def of(cls, partition: bytes, key: bytes, value: bytes) -> "_Row":
        place = {"partition": partition, "key": key}
        if len(value) <= PIECE:
            return cls({**place, "value": value, "pieces": 0})
        cuts = [value[first : first + PIECE] for first in range(0, len(value), PIECE)]
        pieces = [{**place, "piece": number, "value": cut} for number, cut in enumerate(cuts)]
        return cls({**place, "value": b"", "pieces": len(cuts)}, pieces)


def _assembled(rows: Sequence[Row[Any]]) -> dict[bytes, bytes]:
    """Values from rows and pieces, in whatever order they came."""
    pieces = {(row.key, row.piece): row.value for row in rows if row.piece != _WHOLE}
    try:
        return {
            row.key: b"".join(pieces[row.key, number] for number in range(row.pieces)) if row.pieces else row.value
            for row in rows
            if row.piece == _WHOLE
        }
    except KeyError as missing:
        key = missing.args[0][0].decode(errors="replace")
        raise PersistenceError(f"the record {key!r} lacks a piece of its value: restore it from a backup") from None
