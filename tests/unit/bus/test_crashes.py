"""A consumer that dies before or after any one command to the server: its signals are handled, with a ledger once.

A crash is an error that nothing catches, raised in the connection: before the command is sent, or after the server has run it
and before its reply is read. Another consumer then finishes the work. Every command of the whole run is a place to die.
"""

from collections import Counter

import fakeredis
import pytest
import redis
import sqlalchemy as sa

from bus import Backoff, RedisLedger, RedisSignalBus, Signal, SignalConsumer, SqlLedger
from bus.testing import eventually

FACTS = [Signal(name, "fact", {"agent": name[0]}) for name in ("a", "fails once", "poison")]
MOST_COMMANDS = 100


class Crash(BaseException):
    """The process is gone."""


class Fuse:
    """Counts commands, and burns at one of them."""

    def __init__(self, at, moment):
        self.at = at
        self.moment = moment
        self.commands = 0
        self.burnt = False

    def pass_command(self, send):
        if self.burnt:
            # What the client library tries on its way out: nobody is there any more to do it.
            raise redis.ConnectionError
        self.commands += 1
        self.burnt = self.commands == self.at
        if self.burnt and self.moment == "before":
            raise Crash
        send()
        if self.burnt:
            raise Crash


def dying_client(server, fuse):
    class DyingConnection(fakeredis.FakeRedisConnection):
        def send_packed_command(self, *args, **kwargs):
            fuse.pass_command(lambda: super(DyingConnection, self).send_packed_command(*args, **kwargs))

    pool = redis.ConnectionPool(connection_class=DyingConnection, server=server)
    return fakeredis.FakeRedis(connection_pool=pool)


class Handler:
    """Counts its effects where they survive a crash; fails once for one signal, and always for another."""

    def __init__(self, effect):
        self.effect = effect
        self.failed = False
        self.calls = Counter()

    def __call__(self, signal, transaction=None):
        self.calls[signal.id] += 1
        self.effect(signal.id, transaction)
        if signal.id == "poison" or (signal.id == "fails once" and not self.failed):
            self.failed = True
            raise ValueError(signal.id)


def consume(client, handler, ledger):
    return SignalConsumer(
        RedisSignalBus(client),
        "g",
        handler,
        topics=("fact",),
        takeover_after=0.01,
        backoff=Backoff(first=0),
        max_deliveries=3,
        order_by="agent",
        ledger=ledger,
    )


def finished(client):
    (group,) = RedisSignalBus(client).groups()
    return group.unread + group.pending + group.retrying == 0


def crash_and_finish(server, fuse, handler, ledger, dying_ledger):
    """Returns whether there was a crash."""
    client = fakeredis.FakeRedis(server=server)
    RedisSignalBus(client).publish_many(FACTS)
    crashed = False
    try:
        consume(dying_client(server, fuse), handler, dying_ledger).drain()
    except Crash:
        crashed = True
    heir = consume(client, handler, ledger)
    eventually(lambda: heir.drain() >= 0 and finished(client))
    dead = [letter.signal.id for letter in RedisSignalBus(client).dead_letters("g")]
    assert dead == ["poison"], f"{fuse.moment} command {fuse.at}"
    return crashed


def every_crash(explore):
    """Explore each command, before and after, until the run has no more. Returns how many crashes there were."""
    crashes = 0
    for moment in ("before", "after"):
        for at in range(1, MOST_COMMANDS):
            if not explore(Fuse(at, moment)):
                break
            crashes += 1
        else:
            pytest.fail(f"a run has {MOST_COMMANDS} commands or more")
    return crashes


def test_without_a_ledger_every_signal_is_handled_at_least_once():
    def explore(fuse):
        handler = Handler(lambda *_: None)
        crashed = crash_and_finish(fakeredis.FakeServer(), fuse, handler, None, None)
        assert min(handler.calls[signal.id] for signal in FACTS) >= 1, f"{fuse.moment} command {fuse.at}"
        return crashed

    assert every_crash(explore) > 20


def test_with_a_ledger_in_redis_every_effect_is_there_once():
    def explore(fuse):
        server = fakeredis.FakeServer()
        client = fakeredis.FakeRedis(server=server)
        handler = Handler(lambda name, pipe: pipe.incr(f"effect:{name}"))
        dying_ledger = RedisLedger(dying_client(server, fuse))
        crashed = crash_and_finish(server, fuse, handler, RedisLedger(client), dying_ledger)
        effects = [client.get(f"effect:{signal.id}") for signal in FACTS]
        assert effects == [b"1", b"1", None], f"{fuse.moment} command {fuse.at}"
        return crashed

    assert every_crash(explore) > 40


def test_with_a_ledger_in_a_database_every_effect_is_there_once():
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    ledger = SqlLedger(engine)
    ledger.create_table()
    effects = sa.Table("effects", sa.MetaData(), sa.Column("id", sa.String(20)))
    effects.create(engine)

    def explore(fuse):
        with engine.begin() as connection:
            connection.execute(ledger.table.delete())
            connection.execute(effects.delete())

        def effect(name, connection):
            # The database is a store whose commands are places to die, too.
            pass_command = (lambda send: send()) if fuse.burnt else fuse.pass_command
            pass_command(lambda: connection.execute(effects.insert().values(id=name)))

        crashed = crash_and_finish(fakeredis.FakeServer(), fuse, Handler(effect), ledger, ledger)
        with engine.connect() as connection:
            made = sorted(connection.execute(sa.select(effects.c.id)).scalars().all())
        assert made == ["a", "fails once"], f"{fuse.moment} command {fuse.at}"
        return crashed

    assert every_crash(explore) > 20
    engine.dispose()
