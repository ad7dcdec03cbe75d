"""The SQL store keeps the contract on SQLite, which needs no server; its limits (C241), schema and versions."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from persistence import IndexEntry, Persistence, PersistenceError, SqlPersistence, UnreachableError, open_persistence
from persistence.sql import Tables, ddl
from persistence.testing import PersistenceTroubleContract, SharedPersistenceContract


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def store(url: str) -> Iterator[SqlPersistence]:
    with closing(SqlPersistence(url)) as store:
        store.create_schema()
        yield store


class TestSqlPersistenceOnSqlite(SharedPersistenceContract):
    @pytest.fixture
    def opener(self, url: str) -> Callable[[], Persistence]:
        return partial(open_persistence, url)

    @pytest.fixture
    def store(self, store: SqlPersistence) -> Persistence:
        return store


class TestSqliteWithoutAFolder(PersistenceTroubleContract):
    @pytest.fixture
    def broken(self, tmp_path: Path) -> Persistence:
        return open_persistence(f"sqlite:///{tmp_path}/nowhere/store.db")


class TestSqliteWithoutTables(PersistenceTroubleContract):
    @pytest.fixture
    def broken(self, url: str) -> Iterator[Persistence]:
        with closing(SqlPersistence(url)) as store:
            yield store


LONG = "\u20ac" * 85 + "a"
"""86 characters, 256 bytes."""

TOO_LONG: dict[str, Callable[[Persistence], object]] = {
    "partition to begin": lambda store: store.initialize_if_absent(LONG, "f", b"1"),
    "partition to write": lambda store: store.write_if_unchanged(LONG, "f", b"1", {"f": b"2"}),
    "partition to delete": lambda store: store.delete_if_unchanged(LONG, "f", b"1"),
    "condition": lambda store: store.initialize_if_absent("q", LONG, b"1", {"a": b"1"}),
    "one record of several to begin": lambda store: store.initialize_if_absent("q", "f", b"1", {"a": b"1", LONG: b"1"}),
    "one record of several": lambda store: store.write_if_unchanged("p", "f", b"1", {"a": b"2", LONG: b"2", "b": b"2"}),
    "name": lambda store: store.write_if_unchanged("p", "f", b"1", {"a": b"2"}, index=IndexEntry("p", name=LONG)),
    "tag": lambda store: store.write_if_unchanged("p", "f", b"1", {"a": b"2"}, index=IndexEntry("p", tag=LONG)),
    "log": lambda store: store.write_if_unchanged("p", "f", b"1", {"a": b"2"}, append=[("log", b"1"), (LONG, b"1")]),
}


@pytest.mark.parametrize("call", TOO_LONG)
def test_what_has_more_than_255_bytes_is_refused_and_nothing_is_written(store, call):
    store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    with pytest.raises(PersistenceError, match="256 bytes, and an SQL store takes 255 bytes"):
        TOO_LONG[call](store)
    assert store.load("p") == {"f": b"1", "a": b"1"}
    assert store.load("q") == {}
    assert store.find() == store.read_log("log") == []


def test_255_bytes_fit_everywhere_and_what_is_longer_was_never_written(store):
    fits = LONG[:-1]
    entry = IndexEntry(fits, 1.0, fits, fits, fits)
    assert store.initialize_if_absent(fits, fits, b"1", {}, entry, [(fits, b"1")])
    assert store.get(fits, fits) == b"1"
    assert store.find(name=fits, status=fits, tag=fits) == [entry]
    assert store.get("p", LONG) is store.entry(LONG) is None
    assert store.load(LONG) == {}
    assert store.find(tag=LONG) == store.read_log(LONG) == []


def test_a_log_entry_and_a_summary_have_a_limit_in_bytes(store):
    with pytest.raises(PersistenceError, match="1048577 bytes, and 1048576 bytes fit"):
        store.initialize_if_absent("p", "f", b"1", append=[("log", bytes(1_048_577))])
    with pytest.raises(PersistenceError, match="65536 bytes, and 65535 bytes fit"):
        store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p", summary="s" * 65_536))
    assert store.load("p") == {}


def test_nothing_is_left_of_a_deleted_or_replaced_large_value(store):
    large, tables = bytes(2_000_000), store._tables
    store.initialize_if_absent("p", "f", b"1", {"a": large, "b": large, "c": large})
    store.write_if_unchanged("p", "f", b"1", {"a": b"small"}, ["b"])
    with store._link.engine.connect() as connection:
        assert set(connection.execute(sa.select(tables.pieces.c.key)).scalars()) == {b"c"}
        store.delete_if_unchanged("p", "f", b"1")
        assert connection.execute(sa.select(tables.pieces.c.key)).first() is None


def test_a_value_that_lost_a_piece_is_an_error_that_names_its_key(store):
    store.initialize_if_absent("p", "f", b"1", {"a": bytes(2_000_000)})
    with store._link.engine.connect() as connection:
        connection.execute(store._tables.pieces.delete().where(store._tables.pieces.c.piece == 2))
    with pytest.raises(PersistenceError, match="record 'a' lacks a piece"):
        store.load("p")


def test_two_prefixes_are_two_stores(store, url):
    with closing(SqlPersistence(url, prefix="other_")) as other:
        other.create_schema()
        store.initialize_if_absent("p", "f", b"1", {}, IndexEntry("p", 1.0), [("log", b"1")])
        assert other.load("p") == {}
        assert other.due(9.0) == other.find() == other.read_log("log") == []


@pytest.mark.parametrize("prefix", ["", "Upper_", "1_", "a b", "a;drop", "a" * 41])
def test_a_prefix_that_cannot_begin_a_name_is_refused(url, prefix):
    with pytest.raises(ValueError, match="cannot begin the names of tables"):
        SqlPersistence(url, prefix)


def test_the_tables_are_made_once_and_what_was_left_half_made_is_completed(store, url):
    store.initialize_if_absent("p", "f", b"1")
    with store._link.engine.connect() as connection:
        connection.exec_driver_sql("DROP TABLE workflow_log")
        connection.exec_driver_sql("DROP INDEX workflow_index_by_tag")
        connection.exec_driver_sql("DELETE FROM workflow_schema")
    with closing(SqlPersistence(url)) as again:
        with pytest.raises(PersistenceError, match=r"hold no version: call create_schema\(\)"):
            again.load("p")
        again.create_schema()
        again.create_schema()
        assert again.load("p") == {"f": b"1"}
        assert again.write_if_unchanged("p", "f", b"1", {}, append=[("log", b"1")])
        indexes = {index["name"] for index in sa.inspect(again._link.engine).get_indexes("workflow_index")}
        assert indexes == {f"workflow_index_by_{lead}" for lead in ("due", "name", "status", "name_status", "tag", "awaits")}


def test_tables_of_another_version_are_refused_until_they_are_ours(store, url):
    with store._link.engine.connect() as connection:
        connection.exec_driver_sql("UPDATE workflow_schema SET version = 9")
    with closing(SqlPersistence(url)) as later, pytest.raises(PersistenceError, match=r"version 9, not 1: .*create_schema\(\)"):
        later.load("p")


def test_the_printed_statements_make_what_create_schema_makes(store, tmp_path):
    by_hand = f"sqlite:///{tmp_path}/by_hand.db"
    engine = sa.create_engine(by_hand, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.connection.driver_connection.executescript(ddl("sqlite"))
        made = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master ORDER BY name").all()
    with store._link.engine.connect() as connection:
        words = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master ORDER BY name").all()
    assert [(name, " ".join((sql or "").split())) for name, sql in made] == [
        (name, " ".join((sql or "").split())) for name, sql in words
    ]
    with closing(SqlPersistence(by_hand)) as opened:
        assert opened.initialize_if_absent("p", "f", b"1")


def test_the_statements_of_mysql_keep_bytes_and_long_values():
    printed = ddl("mysql")
    assert "`partition` VARBINARY(255) NOT NULL" in printed
    assert "value LONGBLOB NOT NULL" in printed
    assert printed.count("ENGINE=InnoDB") == len(Tables().metadata.tables)
    with pytest.raises(ValueError, match="'oracle' is not a dialect: use one of sqlite, postgresql, mysql, mariadb"):
        ddl("oracle")


def test_every_look_up_goes_by_an_index(store):
    store.initialize_if_absent("p", "f", b"1", index=IndexEntry("p", 1.0))
    wanted = {
        "due <= 1.0 ORDER BY due, partition": "workflow_index_by_due",
        "name = x'61' AND partition > x'61' ORDER BY partition": "workflow_index_by_name ",
        "status = x'61' ORDER BY partition": "workflow_index_by_status",
        "tag = x'61' ORDER BY partition": "workflow_index_by_tag",
        "name = x'61' AND status = x'61' ORDER BY partition": "workflow_index_by_name_status",
    }
    with store._link.engine.connect() as connection:
        for condition, index in wanted.items():
            asked = f"EXPLAIN QUERY PLAN SELECT * FROM workflow_index WHERE {condition} LIMIT 9"
            told = " ".join(row[3] + " " for row in connection.exec_driver_sql(asked).all())
            assert index in told
            assert "TEMP B-TREE" not in told


def test_a_file_that_another_process_keeps_locked_is_an_error_in_bounded_time(store, url):
    store.initialize_if_absent("p", "f", b"1")
    slept: list[float] = []
    with closing(SqlPersistence(f"{url}?timeout=0", retry_delays=(0.5, 1.0), sleep=slept.append)) as waiting:
        with store._link.engine.connect() as other:
            other.exec_driver_sql("BEGIN IMMEDIATE")
            assert waiting.get("p", "f") == b"1"
            with pytest.raises(PersistenceError, match=r"giving way .*locked.*: try again; nothing was written"):
                waiting.write_if_unchanged("p", "f", b"1", {"f": b"2"})
            other.exec_driver_sql("ROLLBACK")
        assert [delay / 2 <= pause <= delay for pause, delay in zip(slept, (0.5, 1.0), strict=True)] == [True, True]
        assert waiting.write_if_unchanged("p", "f", b"1", {"f": b"2"})


def test_a_disk_that_fails_at_the_commit_leaves_the_outcome_unknown(store):
    store.initialize_if_absent("p", "f", b"1")

    def fail(cursor, statement, *rest):
        if statement == "COMMIT":
            failed = sqlite3.OperationalError("disk I/O error")
            failed.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise failed

    sa.event.listen(store._owned, "do_execute", fail)
    with pytest.raises(UnreachableError, match=r"the disk failed .*; whether the write took effect is unknown$"):
        store.write_if_unchanged("p", "f", b"1", {"f": b"2"})


def test_what_is_no_engine_is_refused(url):
    with pytest.raises(PersistenceError, match="a list cannot serve as the database: hand in an Engine or a URL"):
        SqlPersistence([url])


def test_an_engine_in_memory_is_refused():
    with pytest.raises(PersistenceError, match="gone with its connection: name a file, or use memory://"):
        SqlPersistence(sa.create_engine("sqlite://"))


def test_a_connection_in_memory_may_be_joined():
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        joined = SqlPersistence(connection)
        joined.create_schema()
        assert joined.initialize_if_absent("p", "f", b"1")
        connection.commit()
        assert joined.load("p") == {"f": b"1"}
    engine.dispose()


WRONG = {
    "sqlite://": "in memory .*use memory://",
    "sqlite:///:memory:": "in memory",
    "sqlite:///a.db?colour=blue": "only option .*timeout",
    "postgresql+asyncpg://user:secret@host/db": "driver is 'asyncpg'; use postgresql\\+psycopg",
    "mysql+mysqldb://user:secret@host/db": "driver is 'mysqldb'; use mysql\\+pymysql",
    "postgresql+psycopg://user:secret@host": "names no database",
    "postgresql+psycopg://user:secret@host:many/db": "port is not a number",
    "mysql+pymysql://user:secret@host:many/db": "port is not a number",
}


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_url_is_refused_by_the_part_that_is_wrong(url):
    with pytest.raises(PersistenceError, match=WRONG[url]) as caught:
        open_persistence(url)
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_told_with_the_extra_that_brings_it(monkeypatch):
    for url, module, extra in (
        ("postgresql+psycopg://host/db", "psycopg", "postgres"),
        ("mysql+pymysql://host/db", "pymysql", "mysql"),
    ):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(PersistenceError, match=rf"'{module}' is not installed: pip install 'jarvis-mesh\[{extra}\]'"):
            open_persistence(url)
