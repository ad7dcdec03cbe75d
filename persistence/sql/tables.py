"""Every table that the store keeps in a database.

The prefix is ``workflow_`` unless told otherwise. Partitions, keys, names and logs are kept as the bytes of their UTF-8, since
the text of a database folds case, trims spaces or refuses NUL; 255 bytes is the most that each may have.

table              primary key            what                                                       written by
workflow_store     partition, key         one record; a value past 512 KiB is empty here, and its    all three intents
                                          ``pieces`` are counted
workflow_pieces    partition, key, piece  the pieces of such values, so that no statement and no     all three intents
                                          row passes a server's packet limit
workflow_index     partition              the index entry; further indexes lead to what is due, and  all three intents
                                          to a name, a status, both, a tag or an awaited event in
                                          order of partition
workflow_log       log, position          log entries; positions of a log grow by one                all three intents
workflow_log_head  log                    the last position. Its row lock is held from there to the  all three intents
                                          commit, so that positions appear in their order
workflow_schema    version                one row: the version of these tables                       ``create_schema()``
"""

import re
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Double, Index, Integer, LargeBinary, MetaData, Table, text
from sqlalchemy.dialects.mysql import LONGBLOB, VARBINARY

from persistence.errors import PersistenceError

__all__ = ["DEFAULT_PREFIX", "KEY_LIMIT", "KEY_TYPE", "PIECE", "VALUE_TYPE", "VERSION", "Tables", "key_bytes"]

DEFAULT_PREFIX = "workflow_"
VERSION = 1
"""The version of the stored format."""
KEY_LIMIT = 255
"""Bytes that a partition, key, name, status, tag or log may have."""
PIECE = 512 * 1024
"""Bytes of one piece of a value: doubled by escaping it still fits the smallest packet limit that servers are set to."""

KEY_TYPE = LargeBinary(KEY_LIMIT).with_variant(VARBINARY(KEY_LIMIT), "mysql", "mariadb")
VALUE_TYPE = LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")
_PREFIX = re.compile(r"[a-z_][a-z0-9_]{0,39}")


class Tables:
    """The tables of one prefix, in a ``metadata`` of their own (for Alembic, among others)."""

    def __init__(self, prefix: str = DEFAULT_PREFIX) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(f"{prefix!r} cannot begin the names of tables: use up to 40 of a-z, 0-9 and _")
        self.metadata = MetaData()
        self._prefix = prefix
        self.store = self._table(
            "store",
            _key("partition"),
            _key("key"),
            _value("value"),
            Column("pieces", Integer, nullable=False, server_default=text("0")),
            Column("updated_at", DateTime, nullable=False, server_default=text("CURRENT_TIMESTAMP")),
        )
        self.pieces = self._table("pieces", _key("partition"), _key("key"), _number("piece"), _value("value"))
        self.index = self._index()
        self.log = self._table("log", _key("log"), _number("position", BigInteger), _value("data"))
        self.log_head = self._table("log_head", _key("log"), Column("position", BigInteger, nullable=False))
        self.schema = self._table("schema", _number("version"))

    def _index(self) -> Table:
        words = [_word("name"), _word("status"), _word("tag", nullable=True), _word("awaits", nullable=True)]
        table = self._table("index", _key("partition"), Column("due", Double), *words, _value("summary"))
        for leads in (("due",), ("name",), ("status",), ("name", "status"), ("tag",), ("awaits",)):
            name = f"{table.name}_by_{'_'.join(leads)}"
            Index(name, *(table.c[column] for column in leads), table.c.partition)
        return table

    def _table(self, name: str, *columns: Column[Any]) -> Table:
        return Table(f"{self._prefix}{name}", self.metadata, *columns, mysql_engine="InnoDB", mariadb_engine="InnoDB")


def _key(name: str) -> Column[bytes]:
    return Column(name, KEY_TYPE, primary_key=True)


def _number(name: str, kind: type[Integer] = Integer) -> Column[int]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _word(name: str, *, nullable: bool = False) -> Column[bytes]:
    return Column(name, KEY_TYPE, nullable=nullable)


def _value(name: str) -> Column[bytes]:
    return Column(name, VALUE_TYPE, nullable=False)


def key_bytes(what: str, value: str) -> bytes:
    """The bytes under which a text is kept. Raises `PersistenceError` when they are more than a column takes."""
    kept = value.encode()
    if len(kept) > KEY_LIMIT:
        raise PersistenceError(
            f"{what} {value[:40]!r}… has {len(kept)} bytes, and an SQL store takes 255 bytes: shorten it; nothing was written"
        )
    return kept
