"""From the URL of a broker to what Celery is told about it: Redis and Valkey (one server, Sentinels, TLS), or RabbitMQ.

URLs of Redis are those of the store (`persistence.redis.address`), so that one notation serves both.
"""

from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from kombu.transport import TRANSPORT_ALIASES

from persistence.redis.address import Address, read_address
from workers.errors import SettingsError

__all__ = ["CONFIRM_SECONDS", "broker_settings", "is_rabbitmq"]

CONNECT_SECONDS = 3
"""Seconds that one attempt to reach the broker may take."""
ANSWER_SECONDS = 5
"""Seconds in which a Redis broker answers, or its connection is given up. Must stay above the one-second blocking pop."""
CONFIRM_SECONDS = 5
"""Seconds in which RabbitMQ confirms a message."""

_RABBITMQ = ("amqp", "amqps", "pyamqp")
_OURS = ("redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")

_REDIS_TRANSPORT: dict[str, Any] = {
    # Longer than any message stays unacknowledged: they are acknowledged before their task begins.
    "visibility_timeout": 1800,
    # A worker that died between taking a message and acknowledging it leaves one: it is looked for this often (seconds).
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    # A connection that hangs is noticed. All three are needed: the event loop's own reads know no time-out.
    "socket_timeout": ANSWER_SECONDS,
    "socket_connect_timeout": CONNECT_SECONDS,
    "health_check_interval": 5,
    "socket_keepalive": True,
    # Store and broker may share a server.
    "global_keyprefix": "jarvis:broker:",
}

_RABBITMQ_TRANSPORT: dict[str, Any] = {
    # Without it a message that the broker could not keep would count as sent.
    "confirm_publish": True,
}


def is_rabbitmq(url: str) -> bool:
    """Whether the URL is one of RabbitMQ."""
    return urlsplit(url).scheme in _RABBITMQ


def broker_settings(url: str) -> dict[str, Any]:
    """Celery's settings of the connection. Raises `SettingsError` for a broker that Celery cannot use."""
    if is_rabbitmq(url):
        return {"broker_url": url, "broker_transport_options": dict(_RABBITMQ_TRANSPORT)}
    scheme = urlsplit(url).scheme
    if scheme in _OURS:
        return _sentinels(url)
    if scheme.partition("+")[0] not in TRANSPORT_ALIASES:
        whose = "JARVIS_BROKER_URL (without one, JARVIS_REDIS_URL)"
        raise SettingsError(f"{whose}: there is no broker of the scheme {scheme!r}: use redis:// or amqp://")
    return {"broker_url": url, "broker_transport_options": dict(_REDIS_TRANSPORT)}


def _sentinels(url: str) -> dict[str, Any]:
    try:
        address = read_address(url)
    except ValueError as wrong:
        raise SettingsError(f"JARVIS_BROKER_URL: {wrong}") from None
    if address.is_cluster or address.service is None:
        raise SettingsError("JARVIS_BROKER_URL: Celery cannot use a Redis Cluster: name a single server, Sentinels or RabbitMQ")
    options = {"master_name": address.service, "sentinel_kwargs": {**_patience(), **address.sentinel_options}}
    settings: dict[str, Any] = {
        "broker_url": ";".join(_one_sentinel(address, host, port) for host, port in address.hosts),
        "broker_transport_options": {**_REDIS_TRANSPORT, **options},
    }
    if address.plain.startswith("rediss"):
        settings["broker_use_ssl"] = _tls(address)
    return settings


def _patience() -> dict[str, Any]:
    """The Sentinels' own connections: one that hangs must not keep the others from being asked."""
    return {"socket_timeout": CONNECT_SECONDS, "socket_connect_timeout": CONNECT_SECONDS}


def _one_sentinel(address: Address, host: str, port: int) -> str:
    """Celery's spelling, which says the credentials and the database of the server with each Sentinel."""
    plain = urlsplit(address.plain)
    credentials, at, _ = plain.netloc.rpartition("@")
    shown = f"[{host}]" if ":" in host else quote(host)
    return f"sentinel://{credentials}{at}{shown}:{port}{plain.path}"


def _tls(address: Address) -> dict[str, str]:
    options = dict(parse_qsl(urlsplit(address.plain).query))
    return {"ssl_cert_reqs": "required", **{key: value for key, value in options.items() if key.startswith("ssl_")}}
