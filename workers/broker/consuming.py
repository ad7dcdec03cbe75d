"""The worker's consumer: Celery's own, with a gate that malformed messages do not pass and a probe that is heard there.

Celery discards some kinds of malformed message, and ends with others, which the next worker then takes. Here each is put on
`<queue>.malformed`, for people, and acknowledged.
"""

from functools import partial
from typing import Any, ClassVar, cast

import structlog
from celery.utils.dispatch import Signal
from celery.worker.consumer import Consumer
from kombu.messaging import Producer
from vine import promise as vine_promise

from workers.broker.malformed import KEPT, set_aside_queue, task_fault

__all__ = ["PROBE_TASK", "MeshConsumer", "probe_heard"]

PROBE_TASK = "workers.probe"
"""The task name of a message that only shows that this worker takes messages. No pool ever executes it."""

RECONNECT_SECONDS = 3
"""Seconds at most between two tries to reach the broker."""

probe_heard: Any = Signal(name="probe_heard", providing_args={"token"})
"""Sent in the worker's main thread when its own probe has come."""

_log = structlog.get_logger(__name__)


class MeshConsumer(Consumer):
    """See `celery.worker.consumer.Consumer`."""

    class Blueprint(Consumer.Blueprint):
        """Without the timers that Celery keeps in RabbitMQ: ours live in the index, and these are 28 queues."""

        default_steps: ClassVar = [step for step in Consumer.Blueprint.default_steps if "delayed_delivery" not in step]

    def __init__(self, *args: Any, **options: Any) -> None:
        # Nobody listens to these three; each costs messages, and the last one ends a worker whose server was away.
        quiet = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
        super().__init__(*args, **{**options, **quiet})

    def ensure_connected(self, conn: Any) -> Any:
        """See `Consumer.ensure_connected`. Celery's own waits grow to half a minute, in which the server may long be back."""
        conn.ensure_connection = partial(
            conn.ensure_connection, interval_start=1, interval_step=1, interval_max=RECONNECT_SECONDS
        )
        return super().ensure_connected(conn)

    def create_task_handler(self, promise: Any = vine_promise) -> Any:
        """See `Consumer.create_task_handler`."""
        take = cast("Any", super().create_task_handler(promise))
        known = frozenset(cast("Any", self.app).tasks)

        def on_message(message: Any) -> None:
            headers = message.headers
            if isinstance(headers, dict) and cast("dict[str, Any]", headers).get("task") == PROBE_TASK:
                message.ack_log_error(_log, self.connection_errors)
                probe_heard.send(sender=self, token=cast("dict[str, Any]", headers).get("id"))
                return
            fault = task_fault(message, known)
            if fault is None:
                take(message)
            else:
                self._set_aside(message, fault)

        return on_message

    def on_invalid_task(self, body: Any, message: Any, exc: BaseException) -> None:
        """A header that only Celery can judge, such as its expiry, is malformed."""
        self._set_aside(message, str(exc) or type(exc).__name__)

    def on_decode_error(self, message: Any, exc: BaseException) -> None:
        """See `Consumer.on_decode_error`."""
        self._set_aside(message, str(exc) or type(exc).__name__)

    def _set_aside(self, message: Any, fault: str) -> None:
        """Keep it for people, as it came. On the consumer's own channel: trouble with that is trouble of the consumer."""
        delivery: Any = message.delivery_info or {}
        routed = str(delivery.get("routing_key"))
        queue = routed if routed in cast("Any", self.app).amqp.queues else "unknown"
        _log.error("a malformed message was set aside", queue=queue, fault=fault, size=len(message.body or ""))
        name = set_aside_queue(queue)
        if message.channel.queue_declare(queue=name, durable=True, auto_delete=False).message_count < KEPT:
            Producer(message.channel).publish(
                message.body or b"",
                routing_key=name,
                content_type=message.content_type or "application/octet-stream",
                content_encoding=message.content_encoding or "binary",
                headers={"fault": fault},
            )
        message.ack_log_error(_log, self.connection_errors)
