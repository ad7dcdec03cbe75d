"""How Celery is set up, with the reason for each setting.

Celery carries hints only. What must happen stands in the store, so that every setting may favour a worker that keeps
consuming over a message that is never lost.
"""

from typing import Any

from kombu.entity import Exchange, Queue

from workers.hints import SEGMENTS, SWEEPS
from workers.settings import Settings

__all__ = ["celery_settings"]

_TRANSPORT = {
    # Longer than any message stays unacknowledged: they are acknowledged before their task begins.
    "visibility_timeout": 1800,
    # A connection that hangs is noticed. All three are needed; the first must stay above the one-second blocking pop.
    "socket_timeout": 10,
    "socket_connect_timeout": 5,
    "health_check_interval": 10,
    "socket_keepalive": True,
    # Store and broker may share a server.
    "global_keyprefix": "jarvis:broker:",
}


def celery_settings(settings: Settings) -> dict[str, Any]:
    """The Celery configuration of this mesh."""
    return {
        "broker_url": settings.celery_url,
        "broker_transport_options": dict(_TRANSPORT),
        # A failover or a full server is an error of the channel: wait for it rather than end the worker.
        "broker_channel_error_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_pool_acquire_timeout": 10,
        # Early acknowledgement: a worker that lost its server mid-task recovers, and the sweeper repeats what was lost.
        "task_acks_late": False,
        "task_reject_on_worker_lost": False,
        "worker_disable_prefetch": True,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_soft_shutdown_timeout": 10,
        # Outcomes live in the store.
        "task_ignore_result": True,
        "result_backend": None,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "task_queues": [Queue(name, Exchange(name), routing_key=name) for name in (SEGMENTS, SWEEPS)],
        "task_default_queue": SEGMENTS,
        "task_create_missing_queues": False,
        "timezone": settings.mesh.operator.zone,
        "enable_utc": True,
    }
