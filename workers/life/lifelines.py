"""How a prefork parent learns of a child's death at once, with what the child had in hand.

Celery's parent notices a dead child too, but not which run it executed, and reports the loss seconds later. So each child hands
its parent one end of a socket when it begins, and says on it what it takes in hand and lets go of. When the child dies, however
it dies, the system closes the socket. Only forked children have one; for others a lease that ends by itself does the same.

message         content
a new child     its end of the socket, passed over the pair that all children inherit; the data is its pid
of a child      one line of JSON for each segment: [begins, name, workflow id, run id, attempt]
"""

import json
import os
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from workers.life.in_hand import HeldSegment

__all__ = ["Lifelines"]

CHUNK = 65536
"""Bytes that are read at once."""
_PID_BYTES = 32

_log = structlog.get_logger(__name__)

Lost = Callable[[int, set[HeldSegment]], None]
"""Called in the watching thread with the pid of a child that has gone and what it left behind."""


@dataclass
class _Child:
    pid: int
    line: socket.socket
    held: set[HeldSegment] = field(default_factory=set[HeldSegment])
    unread: bytes = b""

    def hear(self, data: bytes) -> None:
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            begins, name, workflow_id, run_id, attempt = json.loads(line)
            (self.held.add if begins else self.held.discard)(HeldSegment(name, workflow_id, run_id, attempt))


class Lifelines:
    """Made in the parent before it forks. ``watch`` runs there, ``hold`` and ``tell`` in a child."""

    def __init__(self) -> None:
        self._parents, self._childrens = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._children: dict[int, _Child] = {}
        self._lock = threading.Lock()
        self._mine: socket.socket | None = None

    # --- in the parent ------------------------------------------------------------------------------------------------------

    def start(self, lost: Lost) -> threading.Thread:
        """Begin to watch, in a thread."""
        thread = threading.Thread(target=self.watch, args=(lost,), name="lifelines", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """End `watch`: nobody is watched any more."""
        self._childrens.send(b"")

    def watch(self, lost: Lost) -> None:
        """Watch until `stop`: a worker does for the length of its process."""
        watching = True
        with selectors.DefaultSelector() as selector, self._parents, self._childrens:
            selector.register(self._parents, selectors.EVENT_READ)
            while watching:
                for key, _ in selector.select():
                    if key.fileobj is self._parents:
                        watching = self._welcome(selector)
                    else:
                        self._hear(selector, key.data, lost)
            for child in self._children.values():
                child.line.close()

    def children(self) -> dict[int, set[HeldSegment]]:
        """The children that live, by pid, with what they have in hand."""
        with self._lock:
            return {child.pid: set(child.held) for child in self._children.values()}

    def _welcome(self, selector: selectors.BaseSelector) -> bool:
        data, received, _, _ = socket.recv_fds(self._parents, _PID_BYTES, 1)
        if not received:
            return False
        child = _Child(int(data), socket.socket(fileno=received[0]))
        with self._lock:
            self._children[child.line.fileno()] = child
        selector.register(child.line, selectors.EVENT_READ, child)
        return True

    def _hear(self, selector: selectors.BaseSelector, child: _Child, lost: Lost) -> None:
        try:
            data = child.line.recv(CHUNK)
        except OSError:
            data = b""
        if data:
            with self._lock:
                child.hear(data)
            return
        selector.unregister(child.line)
        with self._lock:
            del self._children[child.line.fileno()]
        child.line.close()
        try:
            lost(child.pid, child.held)
        except Exception:  # noqa: BLE001 - the other children are to be watched all the same
            _log.exception("what a child left behind was not seen to; its leases end by themselves", child=child.pid)

    # --- in a child ---------------------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Let the parent know of this child. What the parent watches with is not the child's to keep."""
        for sibling in self._children.values():
            sibling.line.close()
        self._children = {}
        self._parents.close()
        self._mine, parents = socket.socketpair()
        # A parent that does not read must not hold a run up.
        self._mine.setblocking(False)
        socket.send_fds(self._childrens, [str(os.getpid()).encode()], [parents.fileno()])
        parents.close()

    def tell(self, begins: bool, segment: HeldSegment) -> None:
        """Say that a segment begins, or has ended."""
        line = json.dumps([begins, segment.name, segment.workflow_id, segment.run_id, segment.attempt])
        if self._mine is not None:
            with suppress(OSError):
                self._mine.sendall(line.encode() + b"\n")
