"""Thousands of signals through three processes that are killed again and again: none is lost, and no effect is made twice.

`CHAOS_SIGNALS` sets how many; 100,000 is the long form.
"""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
import redis

from bus import Signal, open_bus

pytestmark = pytest.mark.server

SIGNALS = int(os.environ.get("CHAOS_SIGNALS", "3000"))
KILLS = max(6, SIGNALS // 2_000)
DEADLINE = 60 + SIGNALS / 200
"""Seconds; the short form takes some five on an idle machine."""

CONSUMER = """
import sys
from bus import RedisLedger, SignalConsumer, open_bus
from persistence.redis import connect

def handle(signal, pipe):
    pipe.hincrby("effects", signal.id, 1)

url = sys.argv[1]
ledger = RedisLedger(connect(url))
SignalConsumer(open_bus(url), "g", handle, topics=("fact",), takeover_after=0.3, max_deliveries=1000, ledger=ledger).run()
"""


class Troop:
    """Three consumers, each replaced when it is killed."""

    def __init__(self, url, stack):
        self.url = url
        self.kills = 0
        self.members = [self.start() for _ in range(3)]
        stack.callback(self.end)

    def start(self):
        return subprocess.Popen([sys.executable, "-c", CONSUMER, self.url], stdout=subprocess.DEVNULL)

    def kill_next(self):
        place = self.kills % len(self.members)
        self.members[place].kill()
        assert self.members[place].wait(30) == -9
        self.members[place] = self.start()
        self.kills += 1

    def end(self):
        for member in self.members:
            member.kill()
            member.wait(30)


def finished(bus):
    groups = bus.groups()
    return bool(groups) and groups[0].unread + groups[0].pending + groups[0].retrying == 0


@pytest.mark.timeout(DEADLINE + 60)
def test_no_signal_is_lost_and_no_effect_is_made_twice_while_consumers_are_killed(redis_url):
    bus, client = open_bus(redis_url), redis.Redis.from_url(redis_url)
    with ExitStack() as stack:
        stack.callback(client.close)
        troop = Troop(redis_url, stack)
        bus.publish_many([Signal(str(number), "fact", {"number": number}) for number in range(SIGNALS)])
        end = time.monotonic() + DEADLINE
        while (made := client.hlen("effects")) < SIGNALS or troop.kills < KILLS or not finished(bus):
            assert time.monotonic() < end, f"{made} of {SIGNALS} handled, {troop.kills} kills, {bus.groups()}"
            # Each kill falls somewhere in the handling of the next part.
            if troop.kills < KILLS and made >= SIGNALS * troop.kills // (KILLS + 1):
                troop.kill_next()
            time.sleep(0.01)
        effects = client.hgetall("effects")
    assert len(effects) == SIGNALS
    assert set(effects.values()) == {b"1"}
    assert bus.dead_letters("g") == []
