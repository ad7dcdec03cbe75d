"""The contract of a ledger on PostgreSQL and MariaDB, in a database of its own that is dropped at the end.

The servers' URLs stand in JARVIS_TEST_POSTGRES_URL and JARVIS_TEST_MARIADB_URL, else the local servers are used.
"""

import os
import secrets
import threading

import pytest
import sqlalchemy as sa

from bus import SqlLedger
from bus.ledgers.testing import LedgerContract

pytestmark = pytest.mark.server

SERVERS = {
    "postgresql": os.environ.get("JARVIS_TEST_POSTGRES_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"),
    "mariadb": os.environ.get("JARVIS_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/mysql"),
}


@pytest.fixture(params=SERVERS)
def engine(request):
    server = sa.create_engine(SERVERS[request.param], isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    name = f"jarvis_test_{secrets.token_hex(6)}"
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    made = sa.create_engine(sa.make_url(SERVERS[request.param]).set(database=name))
    yield made
    made.dispose()
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name}")
    server.dispose()


class Effects:
    def __init__(self, engine):
        self.engine = engine
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE effects (id VARCHAR(20))"))

    def make(self, transaction, signal_id):
        transaction.execute(sa.text("INSERT INTO effects VALUES (:id)"), {"id": signal_id})

    def count(self, signal_id):
        with self.engine.connect() as connection:
            return connection.execute(sa.text("SELECT id FROM effects")).scalars().all().count(signal_id)


@pytest.fixture
def effect(engine):
    return Effects(engine)


@pytest.fixture
def ledger(engine):
    made = SqlLedger(engine)
    made.create_table()
    return made


class TestSqlLedgerOnServers(LedgerContract):
    """The fixtures are those of the module."""


def test_a_second_handler_waits_for_the_first_and_learns_what_became_of_it(ledger, effect):
    outcomes = []

    def second():
        with ledger.once("g", "a") as transaction:
            outcomes.append(transaction)

    with ledger.once("g", "a") as transaction:
        waiting = threading.Thread(target=second)
        waiting.start()
        effect.make(transaction, "a")
        assert outcomes == []
    waiting.join(30)
    assert outcomes == [None]
    assert effect.count("a") == 1
