"""The ledger in a SQL database: the record is a row in the transaction that the handler uses.

The row comes first. Should two consumers have the same signal in hand, the second one waits at the row of the first, and
learns from it that the signal is handled, or goes on when the first one failed.
"""

import datetime as dt
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import sha256

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

__all__ = ["DEFAULT_TABLE", "SqlLedger"]

DEFAULT_TABLE = "jarvis_handled"


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class SqlLedger:
    """`bus.ledgers.Ledger` in the database of ``engine``. The transaction is a Connection: execute, but do not commit.

    A session joins it: ``Session(bind=connection, join_transaction_mode="create_savepoint")``. The table is `table`, for
    migrations; `create_table` makes it where there is none. Rows stay until `forget`.
    """

    def __init__(self, engine: sa.Engine, table: str = DEFAULT_TABLE, *, now: Callable[[], dt.datetime] = _utc_now) -> None:
        self._engine = engine
        self._now = now
        # The key is a hash: names are longer than some databases index, and some take capitals for small letters.
        self.table = sa.Table(
            table,
            sa.MetaData(),
            sa.Column("id", sa.String(64), primary_key=True),
            sa.Column("consumer_group", sa.Text, nullable=False),
            sa.Column("signal_id", sa.Text, nullable=False),
            sa.Column("handled_at", sa.DateTime, nullable=False, index=True),
        )

    def create_table(self) -> None:
        """Create the table unless it is there."""
        self.table.create(self._engine, checkfirst=True)

    def forget(self, before: dt.datetime) -> int:
        """Delete the rows of what was handled before a time (with a zone), and return how many.

        Keep them for longer than the bus keeps signals (`bus.ledgers.contract.KEEP`).
        """
        with self._engine.begin() as connection:
            deleted = connection.execute(self.table.delete().where(self.table.c.handled_at < _stored(before)))
        return deleted.rowcount

    @contextmanager
    def once(self, group: str, signal_id: str) -> Generator[sa.Connection | None]:
        """See `bus.ledgers.Ledger.once`. Raises what SQLAlchemy raises for trouble with the database."""
        with self._engine.connect() as connection:
            with connection.begin() as transaction:
                if self._is_first(connection, group, signal_id):
                    yield connection
                    return
                transaction.rollback()
            yield None

    def _is_first(self, connection: sa.Connection, group: str, signal_id: str) -> bool:
        key = sha256(f"{group}\x00{signal_id}".encode()).hexdigest()
        row = {"id": key, "consumer_group": group, "signal_id": signal_id, "handled_at": _stored(self._now())}
        try:
            connection.execute(self.table.insert().values(row))
        except IntegrityError:
            return False
        return True


def _stored(moment: dt.datetime) -> dt.datetime:
    """UTC without its zone, as every database stores it alike."""
    return moment.astimezone(dt.UTC).replace(tzinfo=None)
