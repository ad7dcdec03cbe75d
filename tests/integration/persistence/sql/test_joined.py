"""A caller's transaction is joined by savepoints: it alone commits, and a failed call leaves it usable (C242)."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from persistence import IndexEntry, PersistenceError
from persistence.sql import SqlPersistence
from workflow import ExecutionRequest, StartEvent, StopEvent, Workflow, WorkflowError, WorkflowState

ENTRY = IndexEntry("p", 1.0, "name")
APPEND = [("log", b"told")]


@pytest.fixture
def connection(any_url) -> Iterator[sa.Connection]:
    """Return a caller's connection."""
    engine = sa.create_engine(any_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        yield connection


def test_what_joins_a_transaction_is_undone_or_kept_with_it(connection, store):
    joined = SqlPersistence(connection)
    for end, left in ((connection.rollback, {}), (connection.commit, {"f": b"2", "a": b"1"})):
        assert joined.initialize_if_absent("p", "f", b"1", {"a": b"1"}, ENTRY, APPEND)
        assert not joined.initialize_if_absent("p", "f", b"other")
        assert joined.write_if_unchanged("p", "f", b"1", {"f": b"2"})
        assert not joined.write_if_unchanged("p", "f", b"1", {"f": b"3"})
        assert joined.load("p") == {"f": b"2", "a": b"1"}
        assert store.load("p") == {}
        end()
        assert store.load("p") == left
    assert store.find() == [ENTRY]
    assert len(store.read_log("log")) == 1


def test_a_call_that_fails_leaves_the_transaction_usable(connection, store):
    joined = SqlPersistence(connection)
    assert joined.initialize_if_absent("p", "f", b"1")
    missing = SqlPersistence(connection, prefix="nowhere_")
    for call in (lambda: missing.load("p"), lambda: missing.initialize_if_absent("p", "f", b"1")):
        with pytest.raises(PersistenceError, match="create_schema"):
            call()
    with pytest.raises(PersistenceError, match="255 bytes"):
        joined.write_if_unchanged("p", "f", b"1", {"a": b"1", "k" * 256: b"1"})
    assert joined.write_if_unchanged("p", "f", b"1", {"f": b"2"})
    connection.commit()
    assert store.load("p") == {"f": b"2"}


def test_what_the_caller_did_before_stays_in_the_same_transaction(connection, store):
    connection.execute(sa.text("INSERT INTO workflow_log_head (log, position) VALUES ('mine', 7)"))
    SqlPersistence(connection).initialize_if_absent("p", "f", b"1")
    connection.rollback()
    assert store.load("p") == {}
    assert connection.execute(sa.text("SELECT count(*) FROM workflow_log_head")).scalar() == 0


def test_another_thread_is_refused_with_what_to_leave_out(connection, store):
    joined = SqlPersistence(connection)
    assert joined.joined
    assert not store.joined
    joined.initialize_if_absent("p", "f", b"1")
    caught: list[BaseException] = []

    def renew() -> None:
        try:
            joined.write_if_unchanged("p", "f", b"1", {"f": b"2"})
        except PersistenceError as refused:
            caught.append(refused)

    renewing = threading.Thread(target=renew)
    renewing.start()
    renewing.join()
    assert "lease_renewal=False" in str(caught[0])
    assert joined.get("p", "f") == b"1"


def test_a_run_whose_lease_would_be_renewed_is_refused_before_it_begins(connection, store):
    def begin(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent("done")

    leased = Workflow("w", nodes=[begin], start_event=StartEvent(), lease_timeout=60, persistence=SqlPersistence(connection))
    with pytest.raises(WorkflowError, match="lease_renewal=False"):
        leased.run()
    assert leased.inspect() is None
    assert leased.ignite()
    assert leased.reconfigure(lease_renewal=False).run(ExecutionRequest.resume()).execution.result == "done"


def test_a_connection_that_commits_by_itself_is_refused(any_url):
    engine = sa.create_engine(any_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(PersistenceError, match="commits by itself"):
        SqlPersistence(connection)


def test_tables_are_made_in_a_transaction_only_where_that_can_be_undone(connection):
    other = SqlPersistence(connection, prefix="other_")
    if connection.dialect.name == "mysql":
        with pytest.raises(PersistenceError, match="would commit your transaction"):
            other.create_schema()
    else:
        other.create_schema()
        assert other.initialize_if_absent("p", "f", b"1")
        connection.rollback()
    assert not [name for name in sa.inspect(connection).get_table_names() if name.startswith("other_")]


def test_a_deadlock_of_two_callers_is_told_to_one_of_them_who_may_begin_again(server_store, server_url):
    for partition in ("p", "q"):
        server_store.initialize_if_absent(partition, "f", b"1")
    engine = sa.create_engine(server_url, poolclass=sa.NullPool)
    both_hold_one = threading.Barrier(2)
    told: list[str] = []

    def write_both(first: str, second: str) -> None:
        with engine.connect() as connection:
            joined = SqlPersistence(connection)
            assert joined.write_if_unchanged(first, "f", b"1", {"f": first.encode()})
            both_hold_one.wait(30)
            try:
                joined.write_if_unchanged(second, "f", b"1", {"f": first.encode()})
            except PersistenceError as given_up:
                told.append(str(given_up))
                connection.rollback()
                assert joined.write_if_unchanged("r", "f", b"1", {}) is False
            connection.commit()

    with ThreadPoolExecutor(2) as pool:
        for run in [pool.submit(write_both, "p", "q"), pool.submit(write_both, "q", "p")]:
            run.result()
    assert len(told) == 1
    assert "gave up your transaction" in told[0]
    assert "roll it back and begin again" in told[0]
    assert server_store.get("p", "f") == server_store.get("q", "f") != b"1"
