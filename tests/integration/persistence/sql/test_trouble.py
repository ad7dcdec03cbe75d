"""Trouble with a server is an error that says what to do, or is ridden out; deadlocks, ended sessions, forks."""

import subprocess
import sys
import threading

import pytest
import sqlalchemy as sa

from persistence import IndexEntry, PersistenceError, UnreachableError
from persistence.sql import SqlPersistence
from persistence.sql.advice import kind_of

ENTRY = IndexEntry("p", 1.0, "name", "status", "tag")
APPEND = [("log", b"told")]
AT_ONCE = ()


@pytest.fixture
def plain(server_url):
    """Return a connection of somebody else to the same database, each statement committed at once."""
    engine = sa.create_engine(server_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


def end_other_sessions(plain: sa.Connection) -> int:
    """End every session on this database but our own, as an administrator would, and count them."""
    if plain.dialect.name == "postgresql":
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        return len(plain.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}").all())
    sessions = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    ids = plain.exec_driver_sql(sessions).scalars().all()
    for session in ids:
        plain.exec_driver_sql(f"KILL {session}")
    return len(ids)


def before(store: SqlPersistence, words: str, act) -> None:
    """Let something happen once, just before the store sends a statement with these words."""
    still_to_come = [act]

    def met(connection, cursor, statement, *rest):
        if words in statement and still_to_come:
            still_to_come.pop()()

    sa.event.listen(store._owned, "before_cursor_execute", met)


@pytest.mark.parametrize("words", ["SELECT", "workflow_store", "workflow_index", "workflow_log_head", "COMMIT"])
def test_a_session_that_is_ended_in_the_middle_is_ridden_out(server_store, plain, words):
    server_store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    before(server_store, words, lambda: end_other_sessions(plain) or pytest.fail("no session was there"))
    assert server_store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, ["a"], ENTRY, APPEND)
    assert server_store.load("p") == {"f": b"2"}
    assert len(server_store.read_log("log")) == 1


def test_idle_connections_that_were_ended_cost_a_read_nothing_but_a_second_try(server_store, plain):
    server_store.initialize_if_absent("p", "f", b"1")
    assert end_other_sessions(plain)
    assert server_store.get("p", "f") == b"1"


def test_a_deadlock_is_tried_again(server_store, server_url):
    """The other holds what we need next, and needs what we hold; whichever the server gives up, both end well."""
    for partition in ("p", "q"):
        server_store.initialize_if_absent(partition, "f", b"1", index=IndexEntry(partition, 1.0))
    engine = sa.create_engine(server_url, poolclass=sa.NullPool)
    ours, theirs = "UPDATE workflow_store SET pieces = 0 WHERE {0} = 'p'", "UPDATE workflow_index SET due = due WHERE {0} = 'p'"
    met: list[BaseException] = []
    with engine.connect() as other:
        column = other.dialect.identifier_preparer.quote("partition")
        other.exec_driver_sql(theirs.format(column))

        def close_the_circle() -> None:
            try:
                other.exec_driver_sql(ours.format(column))
            except sa.exc.OperationalError as given_up:
                met.append(given_up)
            other.rollback()

        waiting = threading.Thread(target=close_the_circle)
        before(server_store, "INTO `workflow_index`" if column != "partition" else "INTO workflow_index", waiting.start)
        slept: list[float] = []
        server_store._link._sleep = slept.append
        assert server_store.write_if_unchanged("p", "f", b"1", {"f": b"2"}, index=IndexEntry("p", 2.0))
        waiting.join()
    assert len(met) + len(slept) >= 1
    assert {kind_of(error).value for error in met} <= {"contention"}
    assert server_store.find() == [IndexEntry("p", 2.0), IndexEntry("q", 1.0)]


def test_a_row_that_stays_locked_is_an_error_in_bounded_time_and_nothing_is_written(server_url, server):
    options = {"options": "-c lock_timeout=100"}
    if server == "mariadb":
        options = {"init_command": "SET SESSION innodb_lock_wait_timeout = 1"}
    engine = sa.create_engine(server_url, connect_args=options)
    store = SqlPersistence(engine, retry_delays=AT_ONCE)
    store.initialize_if_absent("p", "f", b"1")
    other = sa.create_engine(server_url, poolclass=sa.NullPool)
    with other.connect() as holding:
        holding.exec_driver_sql("UPDATE workflow_store SET pieces = 0")
        with pytest.raises(PersistenceError, match=r"giving way .*: try again; nothing was written") as caught:
            store.write_if_unchanged("p", "f", b"1", {"f": b"2"})
    assert not isinstance(caught.value, UnreachableError)
    assert store.get("p", "f") == b"1"
    engine.dispose()


def test_missing_tables_are_an_error_that_names_the_remedy(server_url):
    store = SqlPersistence(server_url, prefix="elsewhere_")
    for call in (lambda: store.get("p", "f"), lambda: store.initialize_if_absent("p", "f", b"1")):
        with pytest.raises(PersistenceError, match=r"missing or not ours .*: call create_schema\(\)"):
            call()
    store.close()


def test_a_user_without_rights_is_told_which_to_grant(server_url, server, plain):
    name = f"{server_url.database}_u"
    host = "" if server == "postgresql" else "@'%%'"
    plain.exec_driver_sql(f"CREATE USER {name}{host} {'PASSWORD' if not host else 'IDENTIFIED BY'} 'secret'")
    try:
        if host:
            plain.exec_driver_sql(f"GRANT SELECT ON {server_url.database}.workflow_schema TO {name}{host}")
        else:
            plain.exec_driver_sql(f"GRANT SELECT ON workflow_schema TO {name}")
        store = SqlPersistence(server_url.set(username=name, password="secret"))
        with pytest.raises(PersistenceError, match=r"lacks a right .*GRANT SELECT, INSERT, UPDATE, DELETE") as caught:
            store.initialize_if_absent("p", "f", b"1")
        assert "secret" not in str(caught.value)
        store.close()
    finally:
        if not host:
            plain.exec_driver_sql(f"REVOKE ALL ON workflow_schema FROM {name}")
        plain.exec_driver_sql(f"DROP USER {name}{host}")


def test_a_server_that_cuts_off_what_does_not_fit_is_refused(url_of):
    engine = sa.create_engine(url_of("mariadb"), connect_args={"init_command": "SET SESSION sql_mode = ''"})
    with pytest.raises(PersistenceError, match="add STRICT_TRANS_TABLES to its sql_mode"):
        SqlPersistence(engine).initialize_if_absent("p", "f", b"1")
    engine.dispose()


def test_four_byte_characters_stand_in_every_place(store):
    text = "\U0001f600 \U0001f9d1\u200d\U0001f680"
    entry = IndexEntry(text, 1.0, text, text, text, text)
    assert store.initialize_if_absent(text, text, text.encode(), {text + "a": b"1"}, entry, [(text, b"1")])
    assert store.load(text) == {text: text.encode(), text + "a": b"1"}
    assert store.find(name=text, status=text, tag=text) == [entry]
    assert len(store.read_log(text)) == 1


CHILDREN = """
import os, sys
from persistence.sql import SqlPersistence

store = SqlPersistence(sys.argv[1])
store.initialize_if_absent("parent", "f", b"0")

def count(name):
    store.initialize_if_absent(name, "f", b"0")
    for turn in range(50):
        assert store.write_if_unchanged(name, "f", b"%d" % turn, {"f": b"%d" % (turn + 1), "name": name.encode()})
        assert store.get(name, "name") == name.encode()

children = []
for place in range(3):
    child = os.fork()
    if child == 0:
        count(f"child {place}")
        os._exit(0)
    children.append(child)
count("parent")
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_a_fork_shares_the_store_and_no_connection(any_url, store):
    url = any_url.render_as_string(hide_password=False)
    done = subprocess.run([sys.executable, "-c", CHILDREN, url], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [store.get(name, "f") for name in ("parent", "child 0", "child 1", "child 2")] == [b"50"] * 4


def test_processes_that_make_the_tables_at_once_all_succeed(server_url):
    program = "import sys; from persistence.sql import SqlPersistence; SqlPersistence(sys.argv[1], 'made_').create_schema()"
    url = server_url.render_as_string(hide_password=False)
    running = [subprocess.Popen([sys.executable, "-c", program, url], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(process.communicate()[1], process.returncode) for process in running] == [("", 0)] * 3
    store = SqlPersistence(server_url, "made_")
    assert store.initialize_if_absent("p", "f", b"1")
    store._tables.metadata.drop_all(store._link.engine)
    store.close()


def test_whoever_has_made_the_tables_holds_nobody_up(url_of):
    store = SqlPersistence(url_of("mariadb"))
    store.create_schema()
    with store._link.engine.connect() as connection:
        held_by = "SELECT IS_USED_LOCK('jarvis_create_schema')"
        assert connection.exec_driver_sql(held_by).scalar() is None
    store.close()
