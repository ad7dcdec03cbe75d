"""The link to a database: a connection for each call, transactions that are repeated while that is safe, helpful errors.

A transaction that broke before its COMMIT was sent has done nothing, and is repeated. One whose reply to COMMIT was lost may
have taken effect: it is repeated only when its author says that this is safe, and the author learns of it. The repeated one
waits at the row locks of the first until that one is decided, so that what it then reads is the outcome.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakSet

from sqlalchemy import Connection, Engine, Executable, String, literal_column, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from persistence.errors import PersistenceError, UnreachableError
from persistence.sql.advice import Trouble, advice, cause_of, kind_of, leaves_doubt, words_of
from persistence.sql.dialects import dialect_of
from persistence.sql.tables import VERSION, Tables

__all__ = ["RETRY_DELAYS", "Act", "EngineLink", "JoinedLink", "Link"]

RETRY_DELAYS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds between tries while the database gives way or does not answer (about 8 s in all, before jitter)."""

T = TypeVar("T")
Act = Callable[[Connection, bool], bool]
"""Work of one transaction: told whether an earlier try may have taken effect, it says whether to commit."""


class Link(Protocol):
    """How the store reaches its database."""

    def read(self, ask: Callable[[Connection], T]) -> T:
        """The answer to one statement."""
        ...

    def change(self, act: Act, *, repeatable: bool = True) -> bool:
        """Run ``act`` in a transaction that commits if it returns True; ``repeatable`` even if the first may have counted."""
        ...

    def create_schema(self, create: Callable[[Connection], None]) -> None:
        """Run the creation of tables, one process at a time."""
        ...


class _CommitLostError(Exception):
    """The connection broke after COMMIT was sent."""

    def __init__(self, trouble: DBAPIError) -> None:
        self.trouble = trouble


class EngineLink:
    """A connection of the engine's pool for each call."""

    def __init__(
        self,
        engine: Engine,
        tables: Tables,
        *,
        retry_delays: Sequence[float] = RETRY_DELAYS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._dialect = dialect_of(engine)
        self._tables = tables
        self._retry_delays = retry_delays
        self._sleep = sleep
        _engines.add(engine)

    def read(self, ask: Callable[[Connection], T]) -> T:
        """See `Link.read`."""

        def once(_: bool) -> T:
            with self.engine.connect() as connection:
                _check_once(connection.info, connection, self._tables)
                return ask(connection)

        return self._repeat(once)

    def change(self, act: Act, *, repeatable: bool = True) -> bool:
        """See `Link.change`."""
        return self._repeat(lambda uncertain: self._transact(lambda connection: act(connection, uncertain)), repeatable)

    def create_schema(self, create: Callable[[Connection], None]) -> None:
        """See `Link.create_schema`."""

        if self._dialect.prepare:
            prepare = text(self._dialect.prepare)
            self._repeat(lambda _: self._alone(prepare))

        def act(connection: Connection) -> bool:
            if self._dialect.lock_schema:
                connection.execute(text(self._dialect.lock_schema))
            try:
                create(connection)
            finally:
                if self._dialect.unlock_schema:
                    connection.execute(text(self._dialect.unlock_schema))
            return True

        self._repeat(lambda _: self._transact(act, checked=False))

    def _alone(self, statement: Executable) -> None:
        with self.engine.connect() as connection:
            connection.execute(statement)

    def _transact(self, act: Callable[[Connection], bool], *, checked: bool = True) -> bool:
        with self.engine.connect() as connection:
            if checked:
                _check_once(connection.info, connection, self._tables)
            connection.exec_driver_sql(self._dialect.begin)
            try:
                done = act(connection)
            except BaseException:
                _roll_back(connection)
                raise
            if not done:
                _roll_back(connection)
                return False
            try:
                connection.exec_driver_sql("COMMIT")
            except DBAPIError as trouble:
                if kind_of(trouble) is Trouble.UNREACHABLE:
                    raise _CommitLostError(trouble) from None
                _roll_back(connection)
                raise
            return True

    def _repeat(self, once: Callable[[bool], T], repeatable: bool = True) -> T:
        uncertain = False
        for delay in (*self._retry_delays, None):
            try:
                return once(uncertain)
            except _CommitLostError as lost:
                uncertain, trouble = True, lost.trouble
                if not repeatable or delay is None:
                    raise self._explained(trouble, uncertain) from cause_of(trouble)
            except (SQLAlchemyError, TypeError) as met:
                trouble = met if isinstance(met, SQLAlchemyError) else _wrong_option(met)
                if delay is None or kind_of(trouble) is Trouble.REFUSED:
                    raise self._explained(trouble, uncertain) from cause_of(trouble)
            except PersistenceError as found:
                # What the repeated transaction finds (tables of another version) says nothing of the first one.
                if uncertain:
                    raise _doubtful(str(found)) from found
                raise
            self._sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
        raise AssertionError("the last try returns or raises")

    def _explained(self, trouble: SQLAlchemyError, uncertain: bool) -> PersistenceError:
        words = advice(trouble, self.address)
        if uncertain:
            return _doubtful(words)
        in_doubt = kind_of(trouble) is Trouble.UNREACHABLE or leaves_doubt(trouble)
        return UnreachableError(words) if in_doubt else PersistenceError(words)

    @property
    def address(self) -> str:
        """Where the database is, without credentials."""
        url = self.engine.url
        if not url.host:
            return str(url.database)
        return f"{url.host}:{url.port}/{url.database}" if url.port else f"{url.host}/{url.database}"


class JoinedLink:
    """The caller's connection: each call is a savepoint of the caller's transaction, and nothing is committed here."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        if connection.dialect.detect_autocommit_setting(cast(DBAPIConnection, connection.connection.dbapi_connection)):
            raise PersistenceError("this connection commits by itself: hand in one with transactions, or its engine")
        self._connection = connection
        self._dialect = dialect_of(connection.engine)
        self._tables = tables
        self._thread: int | None = None
        self._checked: dict[Any, Any] = {}

    def read(self, ask: Callable[[Connection], T]) -> T:
        """See `Link.read`."""
        answers: list[T] = []

        def act(connection: Connection) -> bool:
            answers.append(ask(connection))
            return True

        self._in_savepoint(act)
        return answers[0]

    def change(self, act: Act, *, repeatable: bool = True) -> bool:
        """See `Link.change`: nothing is ever repeated, as only the caller can repeat the transaction."""
        return self._in_savepoint(lambda connection: act(connection, False))

    def create_schema(self, create: Callable[[Connection], None]) -> None:
        """See `Link.create_schema`. Refused where creating a table would commit the caller's transaction."""
        if self._dialect.commits_by_itself:
            raise PersistenceError(
                "creating tables would commit your transaction: call create_schema() on a store of its engine"
            )

        def act(connection: Connection) -> bool:
            create(connection)
            return True

        self._in_savepoint(act, checked=False)

    def _in_savepoint(self, act: Callable[[Connection], bool], *, checked: bool = True) -> bool:
        self._require_thread()
        try:
            self._really_begin()
            savepoint = self._connection.begin_nested()
            try:
                if checked:
                    _check_once(self._checked, self._connection, self._tables)
                done = act(self._connection)
            except BaseException:
                # After a deadlock there is no savepoint left; what has happened is told by the first error.
                with suppress(SQLAlchemyError):
                    savepoint.rollback()
                raise
            if done:
                savepoint.commit()
            else:
                savepoint.rollback()
            return done
        except SQLAlchemyError as trouble:
            raise self._explained(trouble) from cause_of(trouble)

    def _really_begin(self) -> None:
        """Python's SQLite driver begins no transaction before a SAVEPOINT, whose release would then commit."""
        if self._connection.dialect.name == "sqlite":
            driver: Any = self._connection.connection.driver_connection
            if not driver.in_transaction:
                self._connection.exec_driver_sql(self._dialect.begin)

    def _require_thread(self) -> None:
        """A transaction belongs to one thread; another one's savepoints would come in between."""
        thread = threading.get_ident()
        self._thread = self._thread or thread
        if self._thread != thread:
            raise PersistenceError(
                "this store joins a transaction of another thread: set lease_renewal=False, and use no events(), .aio, "
                "async nodes or ConcurrentBranchRunner with it"
            )

    def _explained(self, trouble: SQLAlchemyError) -> PersistenceError:
        kind = kind_of(trouble)
        if kind is Trouble.CONTENTION:
            return PersistenceError(
                f"the database gave up your transaction for another ({words_of(trouble)}): roll it back and begin again"
            )
        words = advice(trouble, str(self._connection.engine.url.host or self._connection.engine.url.database))
        return UnreachableError(words) if kind is Trouble.UNREACHABLE else PersistenceError(words)


def _check_once(checked: dict[Any, Any], connection: Connection, tables: Tables) -> None:
    """Check what the store rests on, once for each connection of a pool: version of the tables, strictness of the server."""
    mark = ("jarvis", tables.schema.name)
    if mark in checked:
        return
    is_mysql = connection.dialect.name in ("mysql", "mariadb")
    mode = literal_column("@@sql_mode" if is_mysql else "''", String).label("mode")
    row = connection.execute(select(tables.schema.c.version, mode)).first()
    if row is None or row.version != VERSION:
        found = "hold no version" if row is None else f"are of version {row.version}, not {VERSION}"
        raise PersistenceError(
            f"the store's tables {found}: call create_schema(), or install the release of jarvis-mesh that made them"
        )
    if is_mysql and not {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"} & set(row.mode.split(",")):
        raise PersistenceError("the database would cut off what does not fit: add STRICT_TRANS_TABLES to its sql_mode")
    checked[mark] = True


def _roll_back(connection: Connection) -> None:
    """Undo a transaction, or drop the connection that cannot."""
    with suppress(SQLAlchemyError):
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")
            return
    with suppress(SQLAlchemyError):
        connection.invalidate()


def _doubtful(words: str) -> UnreachableError:
    """The same of a call whose first try may have counted."""
    told, unknown = words.removesuffix("; nothing was written"), "; whether the write took effect is unknown"
    return UnreachableError(f"{told.removesuffix(unknown)}{unknown}")


def _wrong_option(met: TypeError) -> SQLAlchemyError:
    """A driver's complaint about an option of the URL; any other TypeError is a mistake in the code, and passes."""
    if "unexpected keyword argument" not in str(met):
        raise met
    return SQLAlchemyError(str(met))


_engines: WeakSet[Engine] = WeakSet()
_inherited: list[Any] = []


def _forget_connections() -> None:
    """After a fork: the connections are the parent's, and closing one here would end the parent's session."""
    for engine in list(_engines):
        _inherited.append(engine.pool)  # kept alive, lest the garbage collector close them
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_connections)
