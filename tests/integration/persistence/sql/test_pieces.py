"""A large value that another writer commits while a call waits for its lock goes with the partition, to its last piece."""

import threading
import time

import pytest
import sqlalchemy as sa

from persistence.sql.tables import PIECE, Tables

PATIENCE = 20.0
"""Seconds until a call that should be waiting for a lock counts as lost."""
LOOK_EVERY = 0.2
"""Seconds. MariaDB shows the same again to who asks sooner than a tenth of a second after the last time."""
WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mariadb": "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}
BEGIN = {"postgresql": "BEGIN", "mariadb": "START TRANSACTION"}


def wait_until_locked_out(connection: sa.Connection, server: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not connection.exec_driver_sql(WAITING[server]).scalar_one():
        assert time.monotonic() < deadline, "nobody waits for the lock"
        time.sleep(LOOK_EVERY)


@pytest.mark.parametrize("condition", [{}, {b"f": b"1"}], ids=["condition left alone", "condition written anew"])
def test_no_piece_stays_behind_of_a_value_that_was_written_while_the_deletion_waited(
    server_store, server_url, server, condition
):
    server_store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    server_store.initialize_if_absent("other", "f", b"1", {"big": b"x" * (PIECE + 1)})
    engine = sa.create_engine(server_url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    records, deleted = server_store._records, []
    deletion = threading.Thread(target=lambda: deleted.append(server_store.delete_if_unchanged("p", "f", b"1")))
    with engine.connect() as writer, engine.connect() as looker:
        writer.exec_driver_sql(BEGIN[server])
        held = records.lock(writer, b"p", b"f")
        records.write(writer, b"p", {b"big": b"x" * (2 * PIECE + 1), **condition}, held)
        deletion.start()
        wait_until_locked_out(looker, server)
        writer.exec_driver_sql("COMMIT")
        deletion.join(PATIENCE)
        pieces = Tables().pieces
        left = looker.execute(sa.select(pieces.c.partition, sa.func.count()).group_by(pieces.c.partition)).all()
    assert deleted == [True]
    assert server_store.load("p") == {}
    assert [tuple(row) for row in left] == [(b"other", 2)]
