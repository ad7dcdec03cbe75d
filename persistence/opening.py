"""From a URL to a store."""

from persistence.contract import Persistence
from persistence.errors import PersistenceError
from persistence.memory import InMemoryPersistence

__all__ = ["open_persistence"]

_REDIS = ("redis", "rediss", "unix")


def open_persistence(url: str) -> Persistence:
    """The store behind a URL: ``memory://``, ``redis://…``, ``rediss://…`` or ``unix://…``.

    Raises `PersistenceError` naming the part of the URL that is wrong. No connection is made yet.
    """
    scheme = url.partition(":")[0] if ":" in url else ""
    if scheme == "memory":
        return InMemoryPersistence()
    if scheme in _REDIS:
        return _open_redis(url)
    known = ", ".join(f"{name}://" for name in ("memory", *_REDIS))
    raise PersistenceError(f"cannot open a store at scheme {scheme or '(none)'!r}: use one of {known}")


def _open_redis(url: str) -> Persistence:
    from persistence.redis import RedisPersistence, connect

    try:
        return RedisPersistence(connect(url))
    except ValueError as wrong:
        raise PersistenceError(str(wrong)) from None
