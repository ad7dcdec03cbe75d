"""The contract of a ledger where no server is needed, and what is particular to each store."""

import datetime as dt
from collections import Counter

import fakeredis
import pytest
import sqlalchemy as sa
from redis.exceptions import WatchError

from bus import BusError, BusUnreachableError, InMemoryLedger, RedisLedger, RedisSignalBus, SignalConsumer, SqlLedger
from bus.ledgers.testing import LedgerContract


class TestInMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self):
        return InMemoryLedger()

    @pytest.fixture
    def effect(self):
        class Made:
            def __init__(self):
                self.counts = Counter()

            def make(self, transaction, signal_id):
                transaction.append(lambda: self.counts.update([signal_id]))

            def count(self, signal_id):
                return self.counts[signal_id]

        return Made()


class RedisEffect:
    def __init__(self, client):
        self.client = client

    def make(self, transaction, signal_id):
        transaction.incr(f"effect:{signal_id}")

    def count(self, signal_id):
        return int(self.client.get(f"effect:{signal_id}") or 0)


class TestRedisLedgerOnFakeRedis(LedgerContract):
    @pytest.fixture
    def client(self):
        return fakeredis.FakeRedis()

    @pytest.fixture
    def ledger(self, client):
        return RedisLedger(client)

    @pytest.fixture
    def effect(self, client):
        return RedisEffect(client)


class SqlEffect:
    def __init__(self, engine):
        self.engine = engine
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE effects (id VARCHAR(20))"))

    def make(self, transaction, signal_id):
        transaction.execute(sa.text("INSERT INTO effects VALUES (:id)"), {"id": signal_id})

    def count(self, signal_id):
        with self.engine.connect() as connection:
            rows = connection.execute(sa.text("SELECT id FROM effects")).scalars().all()
        return rows.count(signal_id)


@pytest.fixture
def engine(tmp_path):
    made = sa.create_engine(f"sqlite:///{tmp_path}/shop.db")
    yield made
    made.dispose()


class TestSqlLedgerOnSqlite(LedgerContract):
    @pytest.fixture
    def ledger(self, engine):
        made = SqlLedger(engine)
        made.create_table()
        made.create_table()
        return made

    @pytest.fixture
    def effect(self, engine):
        return SqlEffect(engine)


def test_a_record_in_redis_lives_for_the_given_time():
    client = fakeredis.FakeRedis()
    with RedisLedger(client, "{shop}:handled:", keep=100).once("g", "a"):
        pass
    assert 98 <= client.ttl("{shop}:handled:g:a") <= 100


def test_a_signal_that_somebody_else_handles_meanwhile_fails_and_changes_nothing():
    client = fakeredis.FakeRedis()
    ledger = RedisLedger(client)

    def be_late():
        with ledger.once("g", "a") as late:
            with ledger.once("g", "a") as fast:
                fast.incr("effect")
            late.incr("effect")

    with pytest.raises(BusError) as refusal:
        be_late()
    assert isinstance(refusal.value.__cause__, WatchError)
    assert client.get("effect") == b"1"


def test_a_ledger_without_its_server_is_told_as_trouble_of_the_bus():
    server = fakeredis.FakeServer()
    ledger = RedisLedger(fakeredis.FakeRedis(server=server))
    server.connected = False
    with pytest.raises(BusUnreachableError, match="no answer"), ledger.once("g", "a"):
        pytest.fail("nothing can be handled")


def test_after_the_bus_forgot_an_id_a_ledger_elsewhere_still_knows_it(engine):
    client, ledger, calls = fakeredis.FakeRedis(), SqlLedger(engine), []
    ledger.create_table()
    bus = RedisSignalBus(client)
    for _ in range(2):
        bus.publish("a", "fact", {})
        assert SignalConsumer(bus, "g", lambda signal, _: calls.append(signal.id), ledger=ledger).drain() == 1
        # An eviction or a flush: stream and remembered id are gone, and the second publication makes a new entry.
        client.flushall()
    assert calls == ["a"]


def test_rows_of_the_past_are_forgotten(engine):
    now = [dt.datetime(2026, 11, 30, 6, tzinfo=dt.UTC)]
    ledger = SqlLedger(engine, "handled_by_shop", now=lambda: now[0])
    ledger.create_table()
    for name in ("a", "b"):
        with ledger.once("g", name):
            now[0] += dt.timedelta(days=1)
    # The first is from the 30th, 6 o'clock; the border is in another zone, an hour later.
    border = dt.datetime(2026, 11, 30, 8, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert ledger.forget(border) == 1
    with engine.connect() as connection:
        assert connection.execute(sa.select(ledger.table.c.signal_id)).scalars().all() == ["b"]
