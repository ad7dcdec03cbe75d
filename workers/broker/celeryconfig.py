"""How Celery is set up, with the reason for each setting. `workers.broker.connection` has those of the connection.

Celery carries hints only. What must happen stands in the store, so that every setting may favour a worker that keeps
consuming over a message that is never lost.
"""

from typing import Any

from kombu.entity import Exchange, Queue

from workers.broker.connection import CONNECT_SECONDS, broker_settings, is_rabbitmq
from workers.broker.hints import PUBLISH_POLICY, SEGMENTS, SWEEPS
from workers.settings import Settings

__all__ = ["celery_settings"]


def celery_settings(settings: Settings) -> dict[str, Any]:
    """The Celery configuration of this mesh. Raises `SettingsError` for a broker that Celery cannot use."""
    rabbitmq = is_rabbitmq(settings.celery_url)
    return {
        **broker_settings(settings.celery_url),
        "broker_connection_timeout": CONNECT_SECONDS,
        # A failover or a full server is an error of the channel: wait for it rather than end the worker.
        "broker_channel_error_retry": True,
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # Whoever waits for one of a process's connections waits no longer than for a server.
        "broker_pool_acquire_timeout": CONNECT_SECONDS,
        # RabbitMQ notices that a worker has gone, and the worker that RabbitMQ has; Redis has its own check.
        "broker_heartbeat": 10,
        "task_publish_retry_policy": PUBLISH_POLICY,
        # Early acknowledgement: a worker that lost its server mid-task recovers, and the sweeper repeats what was lost.
        "task_acks_late": False,
        "task_reject_on_worker_lost": False,
        # A worker takes what it has room for: what it took and did not begin would wait there while others are idle.
        "worker_disable_prefetch": not rabbitmq,
        "worker_prefetch_multiplier": 1,
        # The fence decides whose run it is. A task that goes on may be the only one that can commit.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # The number of messages taken is no measure of what a worker may take again after a reconnection.
        "worker_enable_prefetch_count_reduction": False,
        # SIGQUIT, or SIGTERM with REMAP_SIGTERM=SIGQUIT, waits this long too; SIGTERM alone is bounded by `worker_life`.
        "worker_soft_shutdown_timeout": settings.shutdown_grace,
        # Outcomes live in the store.
        "task_ignore_result": True,
        "result_backend": None,
        # Data, never code.
        "task_serializer": "json",
        "accept_content": ["json"],
        # Nobody asks workers anything: one channel and one fault less after a reconnection.
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_consumer": "workers.broker.consuming:MeshConsumer",
        "worker_hijack_root_logger": False,
        "task_queues": [_queue(name, rabbitmq) for name in (SEGMENTS, SWEEPS)],
        "task_default_queue": SEGMENTS,
        "task_create_missing_queues": False,
        # A quorum queue knows no global limit of unacknowledged messages: each consumer has its own.
        "worker_detect_quorum_queues": True,
        "timezone": settings.mesh.operator.zone,
        "enable_utc": True,
    }


def _queue(name: str, rabbitmq: bool) -> Queue:
    # In a RabbitMQ cluster a queue of any other type goes with the node that holds it.
    kind = {"x-queue-type": "quorum"} if rabbitmq else None
    return Queue(name, Exchange(name), routing_key=name, queue_arguments=kind)
