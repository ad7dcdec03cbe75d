"""The probe: whether a live worker really takes messages, found out by sending it one.

After some reconnections a worker's process lives, answers signals and has its connection, but asks the broker for nothing. So
every few seconds it sends itself a token through a queue of its own, which it consumes over the same channel as its tasks. A
token that does not come back, while the broker takes tokens and the worker has room for tasks, makes it deaf: it does not beat,
its consumer is started anew, and if that does not help, the process ends so that its supervisor starts it again.
"""

import threading
import time
from collections.abc import Callable
from enum import Enum

import structlog

__all__ = ["CONSUMER_SECONDS", "PATIENCE", "Hearing", "Probe"]

PATIENCE = 3
"""Rounds without a token after which a worker is deaf."""
CONSUMER_SECONDS = 30
"""Seconds that a new consumer has: it first waits for what the old connection no longer says."""

_log = structlog.get_logger(__name__)


class Hearing(Enum):
    """What the last round has shown."""

    WELL = "well"
    """The token came back, or nothing is known yet."""
    BUSY = "busy"
    """All places of the pool are taken: the worker asks for nothing, as it should."""
    CUT_OFF = "cut off"
    """The broker does not take tokens."""
    DEAF = "deaf"
    """Tokens do not come back."""


class Probe:
    """Looks every ``every`` seconds. ``send`` puts a token on the queue and says whether the broker took it."""

    def __init__(
        self,
        *,
        every: float,
        send: Callable[[], bool],
        is_busy: Callable[[], bool],
        reconnect: Callable[[], None],
        give_up: Callable[[], None],
    ) -> None:
        self._every = every
        self._send = send
        self._is_busy = is_busy
        self._reconnect = reconnect
        self._give_up = give_up
        self._heard = threading.Event()
        self._missed = 0
        self.hearing = Hearing.WELL

    def start(self) -> None:
        """Begin to look, in a thread."""
        threading.Thread(target=self._run, name="probe", daemon=True).start()

    def hear(self) -> None:
        """A token has come back. From any thread."""
        self._heard.set()

    @property
    def is_deaf(self) -> bool:
        """Whether the worker takes no messages though it could."""
        return self.hearing is Hearing.DEAF

    def look(self, wait: Callable[[float], bool] | None = None) -> Hearing:
        """One round: send a token and wait for it, ``every`` seconds at most."""
        self._heard.clear()
        if self._is_busy():
            return self._found(Hearing.BUSY)
        if not self._send():
            return self._found(Hearing.CUT_OFF)
        if (wait or self._heard.wait)(self._every):
            return self._found(Hearing.WELL)
        if self._is_busy():
            return self._found(Hearing.BUSY)
        self._missed += 1
        if self._missed < PATIENCE:
            return self.hearing
        self._act()
        return self.hearing

    def _found(self, hearing: Hearing) -> Hearing:
        if self.is_deaf and hearing is Hearing.WELL:
            _log.info("this worker takes messages again")
        self._missed = 0
        self.hearing = hearing
        return hearing

    def _act(self) -> None:
        self.hearing = Hearing.DEAF
        if self._missed == PATIENCE:
            _log.error("this worker takes no messages: its consumer is started anew")
            self._reconnect()
        elif (self._missed - PATIENCE) * self._every >= CONSUMER_SECONDS:
            _log.error("this worker takes no messages, and a new consumer did not help: the process ends")
            self._give_up()

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            self.look()
            time.sleep(max(0, began + self._every - time.monotonic()))
