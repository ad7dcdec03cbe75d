"""What a forked child does with its parent's connections: it lets go of its copies, and leaves the parent's as they are.

Nothing is said on them, and nothing is taken out of the event loop's list of sockets: the child shares that list with its
parent, which would then wait for nothing. So the sockets are closed as such, beneath the libraries that hold them. Whoever
holds one is found by its kind: libraries drop theirs in a child, if at all, without closing them.
"""

import gc
import socket
from typing import Any, cast

import amqp.transport
import redis.connection

from workers.composition import Runtime

__all__ = ["let_go"]

_KINDS: dict[type, str] = {redis.connection.AbstractConnection: "_sock", cast(Any, amqp.transport)._AbstractTransport: "sock"}
"""What holds a socket of a server, and under which name."""


def let_go(runtime: Runtime) -> None:
    """Close this process's copies of its parent's connections; what is needed here is made anew."""
    for held in gc.get_objects():
        for kind, name in _KINDS.items():
            # Of a proxy only its type may be asked: it would fetch what it stands for.
            if issubclass(type(held), kind):
                _close(getattr(held, name, None))
    runtime.forget_connections()


def _close(copied: object) -> None:
    if isinstance(copied, socket.socket):
        copied.close()
