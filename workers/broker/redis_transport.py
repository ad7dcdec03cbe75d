"""kombu's Redis transports, but for what becomes of an item that is no message: there it ends the worker, here it is set aside.

The worker's entry point installs them (`install`); who only publishes needs them not.
"""

from typing import Any, Final, cast

import structlog
from kombu import transport
from kombu.transport import redis

from workers.broker.malformed import KEPT, envelope_fault, set_aside_queue

__all__ = ["Channel", "SentinelChannel", "SentinelTransport", "Transport", "install"]

_HERE: Final = "workers.broker.redis_transport"

_log = structlog.get_logger(__name__)


class _Sifting:
    """Looks at what a blocking pop brings before the transport does."""

    def _create_client(self: Any, asynchronous: bool = False) -> Any:
        client = cast("Any", super())._create_client(asynchronous=asynchronous)
        if asynchronous:
            client.parse_response = self._sifted(client.parse_response)
        return client

    def _sifted(self: Any, parse: Any) -> Any:
        def parse_response(connection: Any, command_name: str, **options: Any) -> Any:
            reply = parse(connection, command_name, **options)
            if command_name != "BRPOP" or not reply:
                return reply
            key, item = reply
            fault = envelope_fault(item)
            if fault is None:
                return reply
            self._set_aside(key, item, fault)
            return None  # as if nothing had come

        return parse_response

    def _set_aside(self: Any, key: bytes | str, item: bytes, fault: str) -> None:
        name = key.decode() if isinstance(key, bytes) else key
        queue = name.rsplit(self.sep, 1)[0]
        _log.error("a malformed message was set aside", queue=queue, fault=fault, size=len(item))
        with self.conn_or_acquire() as client:
            if client.llen(set_aside_queue(queue)) < KEPT:
                client.lpush(set_aside_queue(queue), item)


class Channel(_Sifting, redis.Channel):
    """See `kombu.transport.redis.Channel`."""


class SentinelChannel(_Sifting, redis.SentinelChannel):
    """See `kombu.transport.redis.SentinelChannel`."""


class Transport(redis.Transport):
    """See `kombu.transport.redis.Transport`."""

    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    """See `kombu.transport.redis.SentinelTransport`."""

    Channel = SentinelChannel


def install() -> None:
    """Have this process use these for the URLs of Redis. Once, before the first connection."""
    for scheme in ("redis", "rediss"):
        transport.TRANSPORT_ALIASES[scheme] = f"{_HERE}:Transport"
    transport.TRANSPORT_ALIASES["sentinel"] = f"{_HERE}:SentinelTransport"
