"""What waits on the queues of the broker: how many messages, and for how long. It only reads."""

import json
import math
from typing import Any, cast

from kombu.transport import redis as over_redis
from kombu.transport import virtual

from workers.broker.hints import SENT_AT

__all__ = ["oldest_sent", "waiting_messages"]


def waiting_messages(connection: Any, queue: str) -> int:
    """How many messages wait on a queue."""
    with connection.channel() as channel:
        if isinstance(channel, over_redis.Channel):
            return _length(channel, queue)
        if isinstance(channel, virtual.Channel):
            return channel._size(queue)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownVariableType]
        try:
            # A question of which the answer is "no such queue" costs the channel: each has its own.
            return channel.queue_declare(queue, passive=True).message_count
        except connection.channel_errors:
            return 0


def _length(channel: Any, queue: str) -> int:
    """How many messages a queue has on Redis.

    kombu asks whether it exists without the prefix of our keys, and so takes every queue for missing; and it asks for the
    length in a transaction, which a full server refuses.
    """
    with channel.client.pipeline(transaction=False) as pipe:
        for priority in channel.priority_steps:
            pipe.llen(channel._q_for_pri(queue, priority))
        return sum(pipe.execute())


def oldest_sent(connection: Any, queue: str) -> float | None:
    """When the message was sent that has waited the longest (Unix seconds, by its sender's clock).

    None when none waits, when it does not say, and on a broker that shows a message only to who takes it, as RabbitMQ does.
    """
    with connection.channel() as channel:
        if not isinstance(channel, over_redis.Channel):
            return None
        redis = cast(Any, channel)
        item = redis.client.lindex(f"{redis.global_keyprefix}{queue}", -1)
    try:
        sent = float(json.loads(item)["headers"][SENT_AT])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None  # nothing waits, or a malformed message, which the next worker sets aside
    return sent if math.isfinite(sent) else None
