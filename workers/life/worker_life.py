"""What a worker process does beside its tasks: it beats, probes itself, watches its children, and leaves within its grace.

when                      what
before the pool forks     children are expected to report, and the queue of the probe is added
in a forked child         connections are its own; segments are reported to the parent
the worker is ready       heart and probe begin
a child dies              its segments are given back at once
SIGTERM, SIGQUIT          after the grace what is still in hand is given back, and the process ends
"""

import os
import secrets
import signal as system_signals
import threading
import time
from contextlib import suppress
from typing import Any, cast

import structlog
from celery import Celery, signals
from celery.worker import state
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError

from workers.broker.consuming import PROBE_TASK, probe_heard
from workers.broker.hints import publish
from workers.broker.probing import Probe
from workers.composition import Runtime
from workers.life.forking import let_go
from workers.life.in_hand import HeldSegment, InHand, give_back
from workers.life.lifelines import Lifelines
from workers.signals.beats import Heart, worker_name

__all__ = ["WorkerLife"]

PROBE_QUEUE_EXPIRES = 300
"""Seconds after which RabbitMQ and Redis forget the probe's queue of a worker that has gone."""
DEAF = 75
"""Exit code of a worker that could not be made to take messages: try again."""

_log = structlog.get_logger(__name__)


class WorkerLife:
    """The life of one worker process. Does nothing in a process of the same app that is no worker."""

    def __init__(self, app: Celery, runtime: Runtime) -> None:
        self._app = app
        self._runtime = runtime
        self._process = os.getpid()
        self._in_hand = InHand()
        self._lifelines: Lifelines | None = None
        self._consumer: Any = None
        self._parting = False
        self._probe_queue = f"probe.{secrets.token_hex(8)}"
        settings = runtime.settings
        self._probe = Probe(
            every=settings.probe_every,
            send=self._send_token,
            is_busy=self._is_busy,
            reconnect=self._reconnect,
            give_up=self._end_deaf,
        )
        agents = (*settings.roles, worker_name())
        self._heart = Heart(runtime.signals, agents, every=settings.heartbeat_every, silent=lambda: self._probe.is_deaf)

    def hook(self) -> None:
        """Have Celery call when it is time. The handlers are kept by strong references."""
        signals.worker_init.connect(self._before_pool, weak=False)
        signals.worker_process_init.connect(self._in_child, weak=False)
        signals.worker_ready.connect(self._begin, weak=False)
        signals.worker_shutting_down.connect(self._part, weak=False)
        probe_heard.connect(self._hear, weak=False)

    # --- beginning ----------------------------------------------------------------------------------------------------------

    def _before_pool(self, **_: Any) -> None:
        self._runtime.listeners = (*self._runtime.listeners, self._in_hand)
        self._lifelines = Lifelines()
        # Before the first child: a child waits until the parent takes its end of the line.
        self._lifelines.start(self._bury)
        name = self._probe_queue
        self._app.amqp.queues.select_add(Queue(name, Exchange(""), name, expires=PROBE_QUEUE_EXPIRES, auto_delete=True))

    def _in_child(self, **_: Any) -> None:
        if os.getpid() == self._process or self._lifelines is None:
            return
        let_go(self._runtime)
        self._lifelines.hold()
        self._in_hand.become_child(self._lifelines.tell)

    def _begin(self, sender: Any = None, **_: Any) -> None:
        self._consumer = sender
        # Celery's own handler calls off running tasks, which only prefork can; on other pools the worker then hangs.
        system_signals.signal(system_signals.SIGQUIT, self._told_to_go)
        self._heart.start()
        self._probe.start()

    def _bury(self, pid: int, left: set[HeldSegment]) -> None:
        if left:
            give_back(self._runtime, left, f"child {pid} has died", lost=True)

    # --- the probe's means --------------------------------------------------------------------------------------------------

    def _send_token(self) -> bool:
        try:
            publish(self._app, PROBE_TASK, self._probe_queue, [])
        except (OperationalError, OSError):
            return False
        return True

    def _hear(self, **_: Any) -> None:
        self._probe.hear()

    def _is_busy(self) -> bool:
        if self._parting:
            return True
        pool = getattr(self._consumer, "pool", None)
        return pool is not None and len(cast("Any", state.reserved_requests)) >= pool.num_processes

    def _reconnect(self) -> None:
        """Raise, in the worker's loop, what it takes for a lost connection."""
        lost = ConnectionResetError("this worker's own probe did not come back")

        def lose() -> None:
            raise lost

        if self._consumer.hub is not None:
            self._consumer.hub.call_soon(lose)

    def _end_deaf(self) -> None:
        self._leave(DEAF, "this worker takes no messages")

    # --- leaving ------------------------------------------------------------------------------------------------------------

    def _told_to_go(self, *_: Any) -> None:
        """Leave as after SIGTERM. A child inherits this, and leaves with its parent."""
        if os.getpid() != self._process:
            return
        state.should_stop = os.EX_OK
        self._part()

    def _part(self, **_: Any) -> None:
        """Stop to beat, and see to it that the process ends. Called in a signal handler: the waiting is a thread's."""
        if self._parting:
            return
        self._parting = True
        threading.Thread(target=self._end_after_grace, name="parting", daemon=True).start()

    def _end_after_grace(self) -> None:
        self._heart.stop()
        time.sleep(self._runtime.settings.shutdown_grace)
        self._leave(os.EX_OK, "this worker was told to go, and its grace is over")

    def _leave(self, exit_code: int, why: str) -> None:
        """End this process and its children now, and give back what they have in hand."""
        children = {} if self._lifelines is None else self._lifelines.children()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, system_signals.SIGKILL)
        give_back(self._runtime, self._in_hand.held().union(*children.values()), why, lost=False)
        os._exit(exit_code)
