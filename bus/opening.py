"""From a URL to a bus."""

from bus.contract import SignalBus
from bus.errors import BusError
from bus.memory import InMemorySignalBus

__all__ = ["open_bus"]

_REDIS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")


def open_bus(url: str) -> SignalBus:
    """The bus behind a URL: ``memory://``, ``redis://…``, ``rediss://…`` or ``unix://…``. No connection is made yet.

    Raises `BusError` naming the part of the URL that is wrong. Each ``memory://`` is a bus of its own.
    """
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme == "memory":
        return InMemorySignalBus()
    if scheme in _REDIS:
        return _open_redis(url)
    known = ", ".join(f"{name}://" for name in ("memory", *_REDIS))
    raise BusError(f"cannot open a bus at scheme {scheme or '(none)'!r}: use one of {known}")


def _open_redis(url: str) -> SignalBus:
    from bus.redis import RedisSignalBus
    from persistence.redis import connect

    try:
        client = connect(url)
    except ValueError as trouble:
        # The words of the client library, not the URL, which may hold a password.
        raise BusError(f"cannot read the URL of the bus: {trouble}") from trouble
    return RedisSignalBus(client)
