"""The cost of the SQL store: each intent, and the read of a partition, against the raw driver doing the same statements."""

import itertools
import os
import secrets
import statistics
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import sqlalchemy as sa

from benchmarks.measuring import report, seconds
from persistence import IndexEntry
from persistence.sql import SqlPersistence

CALLS = 300
ROUNDS = 3
SERVERS = {
    "PostgreSQL": os.environ.get("JARVIS_TEST_POSTGRES_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"),
    "MariaDB": os.environ.get("JARVIS_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/mysql"),
}

_ids: Iterator[int] = itertools.count()


@contextmanager
def database(name: str) -> Generator[sa.URL]:
    """A database of our own, dropped at the end."""
    if name == "SQLite":
        with tempfile.TemporaryDirectory(prefix="jarvis-bench-") as folder:
            yield sa.make_url(f"sqlite:///{folder}/store.db")
        return
    made = f"jarvis_bench_{secrets.token_hex(4)}"
    server = sa.create_engine(SERVERS[name], isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {made}")
    try:
        yield sa.make_url(SERVERS[name]).set(database=made)
    finally:
        with server.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {made}")


class Recording:
    """The statements that the store sends, as the driver gets them."""

    def __init__(self, engine: sa.Engine) -> None:
        self.statements: list[tuple[str, Any]] = []
        sa.event.listen(engine, "before_cursor_execute", self._sent)

    def _sent(self, connection: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        self.statements.append((statement, parameters))

    def of(self, act: Callable[[], object]) -> list[tuple[str, Any]]:
        """The statements of one act."""
        self.statements.clear()
        act()
        return list(self.statements)


def intents(store: SqlPersistence) -> dict[str, Callable[[], object]]:
    """One call of each kind, on partitions of its own where it makes or ends one."""
    step = {"control": b"c" * 300, "run_1/step": b"s" * 500}
    entry = IndexEntry("run", 1.0, "order", "running")
    store.initialize_if_absent("run", "control", step["control"], step, entry)
    to_delete = [f"gone {place}" for place in range(2 * CALLS * ROUNDS + 1)]
    for partition in to_delete:
        store.initialize_if_absent(partition, "control", b"1", step, IndexEntry(partition, 1.0))

    def begin() -> None:
        partition = f"new {next(_ids)}"
        assert store.initialize_if_absent(partition, "control", b"1", step, IndexEntry(partition, 1.0))

    return {
        "get": lambda: store.get("run", "control"),
        "load": lambda: store.load("run"),
        "initialize_if_absent": begin,
        "write_if_unchanged": lambda: store.write_if_unchanged("run", "control", step["control"], step, (), entry),
        "the same with a log": lambda: store.write_if_unchanged(
            "run", "control", step["control"], step, (), entry, [("history", b"h" * 200)]
        ),
        "delete_if_unchanged": lambda: store.delete_if_unchanged(to_delete.pop(), "control", b"1"),
    }


def measure() -> None:
    """Print the figures."""
    for name in ("SQLite", *SERVERS):
        with database(name) as url, closing(SqlPersistence(url)) as store:
            store.create_schema()
            engine = store._link.engine  # pyright: ignore[reportAttributeAccessIssue]
            recording = Recording(engine)
            rows = [(intent, _figure(engine, recording, act)) for intent, act in intents(store).items()]
            report(f"SQL store on {name}, one connection", rows)


def _figure(engine: sa.Engine, recording: Recording, act: Callable[[], object]) -> str:
    statements = recording.of(act)
    ours = statistics.median(seconds(lambda: [act() for _ in range(CALLS)]) for _ in range(ROUNDS)) / CALLS
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        raw = statistics.median(seconds(lambda: _replay(driver, statements)) for _ in range(ROUNDS)) / CALLS
    return f"{1 / ours:6.0f}/s, {len(statements)} statements, {ours / raw:.2f} times the raw driver"


def _replay(driver: Any, statements: list[tuple[str, Any]]) -> None:
    """Send the statements of one call as often, to partitions and positions of their own."""
    for _ in range(CALLS):
        turn = next(_ids)
        cursor = driver.cursor()
        for statement, parameters in statements:
            if isinstance(parameters, list):
                cursor.executemany(statement, [_of_turn(row, turn, statement) for row in parameters])
            else:
                cursor.execute(statement, _of_turn(parameters or (), turn, statement))
            if cursor.description:
                cursor.fetchall()
        cursor.close()


def _of_turn(parameters: Any, turn: int, statement: str) -> Any:
    if isinstance(parameters, dict):
        return {name: _value(value, turn, statement) for name, value in parameters.items()}
    return tuple(_value(value, turn, statement) for value in parameters)


def _value(value: Any, turn: int, statement: str) -> Any:
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, bytes) and value.startswith(b"new "):
        return b"raw %d" % turn
    if isinstance(value, bytes) and value.startswith(b"gone "):
        return b"gone %d" % (turn % (CALLS * ROUNDS))
    return 1_000_000 + turn if isinstance(value, int) and "INTO workflow_log " in statement else value
