"""Heartbeats: a timer, however busy the worker's pool is, says on the bus that the worker and its roles are there."""

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable

import structlog

from bus import BusError, Signal, SignalBus
from mesh.ports import JarvisHeartbeatStore

__all__ = ["BEAT_TOPIC", "WORKER_PREFIX", "Heart", "record_beat", "worker_name"]

BEAT_TOPIC = "agent.heartbeat"
WORKER_PREFIX = "worker:"
"""What the agent name of a worker process begins with; host and pid follow."""

_log = structlog.get_logger(__name__)


def worker_name() -> str:
    """The agent name of this worker process."""
    return f"{WORKER_PREFIX}{socket.gethostname()}:{os.getpid()}"


class Heart:
    """Beats every ``every`` seconds for the given agents, in a thread of its own; not while it is to be ``silent``."""

    def __init__(
        self, signals: SignalBus, agents: Iterable[str], *, every: float, silent: Callable[[], bool] = lambda: False
    ) -> None:
        self._signals = signals
        self._agents = tuple(agents)
        self._every = every
        self._silent = silent
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
        self._troubled = False

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until the last beat is out."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def beat(self) -> None:
        """Beat once. Each beat is a signal of its own; its time is the server's."""
        beats = [Signal(f"{BEAT_TOPIC}/{agent}/{secrets.token_hex(8)}", BEAT_TOPIC, {"agent": agent}) for agent in self._agents]
        self._signals.publish_many(beats)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if not self._silent():
                    self.beat()
                self._troubled = False
            except BusError as trouble:
                if not self._troubled:
                    _log.warning("cannot beat until the bus answers", trouble=str(trouble))
                self._troubled = True
            self._stopping.wait(self._every)


def record_beat(heartbeats: JarvisHeartbeatStore, signal: Signal) -> None:
    """Record a beat that came over the bus, at the time when the server took it."""
    agent = signal.payload.get("agent")
    if isinstance(agent, str) and agent:
        heartbeats.beat(agent, signal.published_at)
