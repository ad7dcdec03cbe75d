"""What may happen to a mesh: each fault is a function that does it, and returns how it is lifted, if it lasts.

Victims and lengths are drawn from the given randomness. `FAULTS` at the end lists them all.
"""

import base64
import json
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.field import LEASE, Field
from tests.chaos.proxy import Proxy
from tests.chaos.troop import Member

__all__ = ["FAULTS", "LONG_FAULTS", "NEED_THE_SERVER", "QUEUES", "STOP_EVERYBODY", "TAKE_THE_SERVER_AWAY", "Fault", "Relief"]

QUEUES = ("jarvis:broker:segments", "jarvis:broker:sweeps")
SHORT = (0.3, 1.5)
"""Seconds that most faults last."""
AWAY = (8.0, 14.0)
"""Seconds for which the server is away when calls are to give up (`persistence.redis.link.RETRY_DELAYS`)."""
LONGER = (0.5 * LEASE, 2 * LEASE)
"""Seconds that a process is stopped: some wake up before their lease has ended, some after it."""


@dataclass(frozen=True, slots=True)
class Relief:
    """How a fault ends. ``hit`` names the processes that it struck dead or dumb."""

    after: float = 0
    lift: Callable[[], None] | None = None
    hit: tuple[int, ...] = ()


Fault = Callable[[Field, random.Random], Relief]


def _living(field: Field, chance: random.Random, fit: Callable[[Member], bool] = lambda member: True) -> Member | None:
    fitting = [member for member in field.troop.members if member.is_alive and not member.doomed and fit(member)]
    return chance.choice(fitting) if fitting else None


# --- processes --------------------------------------------------------------------------------------------------------------


def _kill(member: Member | None, pids: Callable[[Member], list[int]], *, doomed: bool = True) -> Relief:
    if member is None:
        return Relief()
    victims, family = pids(member), member.family()
    member.doomed = member.doomed or doomed
    member.signal(signal.SIGKILL, to=victims)
    return Relief(hit=tuple(family if member.pid in victims else victims))


def kill_a_worker(field: Field, chance: random.Random) -> Relief:
    """kill -9, the children too."""
    return _kill(_living(field, chance, lambda member: member.is_worker), lambda member: member.family())


def kill_a_parent(field: Field, chance: random.Random) -> Relief:
    """kill -9 of the parent alone: its children are left alone, and see to themselves."""
    return _kill(_living(field, chance, lambda member: member.role == "prefork"), lambda member: [member.pid])


def kill_a_child(field: Field, chance: random.Random) -> Relief:
    """kill -9 of a child, as for want of memory.

    A pool that loses a child while it begins is, to Celery, one that cannot begin, and its worker ends.
    """
    member = _living(field, chance, lambda member: member.role == "prefork" and member.is_settled_in)
    return _kill(member, lambda member: [chance.choice(member.children() or [member.pid])], doomed=False)


def kill_an_attendant(field: Field, chance: random.Random) -> Relief:
    """kill -9 of a beat, a sweeper or a consumer."""
    return _kill(_living(field, chance, lambda member: not member.is_worker), lambda member: [member.pid])


def _end(field: Field, chance: random.Random, number: int, fit: Callable[[Member], bool]) -> Relief:
    member = _living(field, chance, fit)
    if member is None:
        return Relief()
    member.doomed = True
    member.signal(number)
    return Relief()


def end_gently(field: Field, chance: random.Random) -> Relief:
    """SIGTERM, as a deployment does."""
    return _end(field, chance, signal.SIGTERM, lambda member: True)


def quit_a_worker(field: Field, chance: random.Random) -> Relief:
    """SIGQUIT."""
    return _end(field, chance, signal.SIGQUIT, lambda member: member.is_worker)


def stop_a_process(field: Field, chance: random.Random) -> Relief:
    """SIGSTOP, and later SIGCONT: it wakes up with work that may be somebody else's."""
    member = _living(field, chance)
    if member is None:
        return Relief()
    victims = member.family()
    member.signal(signal.SIGSTOP, to=victims)
    return Relief(chance.uniform(*LONGER), lambda: member.signal(signal.SIGCONT, to=victims), tuple(victims))


# --- the server -------------------------------------------------------------------------------------------------------------


def kill_the_server(field: Field, chance: random.Random) -> Relief:
    """kill -9 of Redis, and its start again a moment later."""
    field.server.end(signal.SIGKILL)
    return Relief(chance.uniform(*SHORT), field.server.start)


def take_the_server_away(field: Field, chance: random.Random) -> Relief:
    """Redis is away for longer than anybody tries to reach it."""
    field.server.end(signal.SIGKILL)
    return Relief(chance.uniform(*AWAY), field.server.start)


def restart_the_server(field: Field, chance: random.Random) -> Relief:
    """A new version of Redis is put in."""
    field.server.end(signal.SIGTERM)
    field.server.start()
    return Relief()


def stop_the_server(field: Field, chance: random.Random) -> Relief:
    """Redis answers nobody for a while, and then everybody."""
    field.server.signal(signal.SIGSTOP)
    return Relief(chance.uniform(*SHORT), lambda: field.server.signal(signal.SIGCONT))


def flush_scripts(field: Field, chance: random.Random) -> Relief:
    """The server knows no script any more."""
    field.redis.script_flush()
    return Relief()


# --- the network ------------------------------------------------------------------------------------------------------------


def _proxies(field: Field) -> list[Proxy]:
    return [field.proxy, *(member.proxy for member in field.troop.members)]


def cut_everybody_off(field: Field, chance: random.Random) -> Relief:
    """All connections are reset at once."""
    for proxy in _proxies(field):
        field.proxies.do(proxy.cut)
    return Relief()


def cut_one_off(field: Field, chance: random.Random) -> Relief:
    """One process's connections are reset."""
    field.proxies.do(chance.choice(_proxies(field)).cut)
    return Relief()


def freeze_everybody(field: Field, chance: random.Random) -> Relief:
    """The network is down for longer than a lease."""
    for proxy in _proxies(field):
        field.proxies.do(proxy.freeze)
    return Relief(chance.uniform(*LONGER), lambda: _recover_all(field))


def _recover_all(field: Field) -> None:
    for proxy in _proxies(field):
        field.proxies.do(proxy.recover)


def freeze_one(field: Field, chance: random.Random) -> Relief:
    """One process is cut off for longer than a lease may last; what it said arrives late."""
    proxy = chance.choice(_proxies(field))
    field.proxies.do(proxy.freeze)
    return Relief(chance.uniform(*LONGER), lambda: field.proxies.do(proxy.recover))


def forget_connections(field: Field, chance: random.Random) -> Relief:
    """The connections that one process has stay open and pass nothing; new ones work."""
    field.proxies.do(chance.choice(_proxies(field)).forget)
    return Relief()


def lose_replies(field: Field, chance: random.Random) -> Relief:
    """For a moment what one process asks for is done, and its connection ends before it hears of it."""
    proxy = chance.choice(_proxies(field))
    field.proxies.do(proxy.lose_replies)
    return Relief(chance.uniform(*SHORT), lambda: field.proxies.do(proxy.recover))


def slow_everybody(field: Field, chance: random.Random) -> Relief:
    """Each message takes its time."""
    for proxy in _proxies(field):
        field.proxies.do(proxy.slow, chance.uniform(0.005, 0.05))
    return Relief(chance.uniform(*SHORT), lambda: _recover_all(field))


# --- the queues -------------------------------------------------------------------------------------------------------------


def lose_messages(field: Field, chance: random.Random) -> Relief:
    """The broker has lost what was on its queues."""
    field.broker.delete(*QUEUES)
    return Relief()


def repeat_messages(field: Field, chance: random.Random) -> Relief:
    """Hints come twice: of every run that is there."""
    for entry in field.direct.runtime.store.find(limit=20):
        run_id = json.loads(entry.summary)["run_id"]
        field.direct.runtime.hints.send(entry.name, entry.partition, run_id)
    return Relief()


def put_malformed(field: Field, chance: random.Random) -> Relief:
    """Somebody has put something else on the queues."""
    for queue in QUEUES:
        field.broker.lpush(queue, chance.choice(MALFORMED))
    return Relief()


def _message(body: bytes, **changed: Any) -> bytes:
    properties = {"delivery_tag": "t", "delivery_info": {"exchange": "", "routing_key": "segments"}, "body_encoding": "base64"}
    whole = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": "workers.run_segment", "id": "1", "lang": "py"},
        "properties": properties,
    }
    return json.dumps({**whole, **changed}).encode()


MALFORMED = (
    b"{not json",
    b"\xff\xfe",
    b"[1, 2]",
    _message(b"{oops"),
    _message(b'{"args": []}'),
    _message(b"[[], {}, {}]", properties={}),
    _message(b"[[], {}, {}]", headers={"task": "os.system", "id": "1"}),
    _message(b'[["chaos-chain", "nobody", "no-run"], {}, {}]'),
    _message(b'[["no such workflow", "nobody", "no-run"], {}, {}]'),
    _message(b'[["too", "few"], {}, {}]'),
)

FAULTS: tuple[Fault, ...] = (
    kill_a_worker,
    kill_a_parent,
    kill_a_child,
    kill_an_attendant,
    end_gently,
    quit_a_worker,
    stop_a_process,
    kill_the_server,
    restart_the_server,
    stop_the_server,
    flush_scripts,
    cut_everybody_off,
    cut_one_off,
    freeze_one,
    forget_connections,
    lose_replies,
    slow_everybody,
    lose_messages,
    repeat_messages,
    put_malformed,
)
"""What the short form goes through."""
LONG_FAULTS: tuple[Fault, ...] = (*FAULTS, take_the_server_away, freeze_everybody)
"""Every kind there is."""

NEED_THE_SERVER = frozenset(
    {
        *(kill_the_server, take_the_server_away, restart_the_server, stop_the_server),
        *(flush_scripts, lose_messages, repeat_messages, put_malformed),
    }
)
"""Those that cannot be done while it is away."""
TAKE_THE_SERVER_AWAY = frozenset({kill_the_server, take_the_server_away, stop_the_server})
"""Those during which it is away."""
STOP_EVERYBODY = frozenset({*TAKE_THE_SERVER_AWAY, restart_the_server, freeze_everybody})
"""Those during which nobody can do anything."""
