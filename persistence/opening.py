"""From a URL to a store."""

from persistence.contract import Persistence
from persistence.errors import PersistenceError
from persistence.memory import InMemoryPersistence

__all__ = ["open_persistence"]

_REDIS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_SQL = ("sqlite", "postgresql+psycopg", "mysql+pymysql", "mariadb+pymysql")


def open_persistence(url: str) -> Persistence:
    """The store behind a URL: ``memory://``, ``file:///…``, ``redis://…`` and its kin, ``sqlite:///…``,
    ``postgresql+psycopg://…`` or ``mysql+pymysql://…``.

    Raises `PersistenceError` naming the part of the URL that is wrong. No connection is made yet.
    """
    scheme = url.partition(":")[0] if ":" in url else ""
    if scheme == "memory":
        return InMemoryPersistence()
    if scheme == "file":
        return _open_file(url)
    if scheme in _REDIS:
        return _open_redis(url)
    if scheme.partition("+")[0] in ("sqlite", "postgresql", "mysql", "mariadb"):
        return _open_sql(url)
    known = ", ".join(f"{name}://" for name in ("memory", "file", *_REDIS, *_SQL))
    raise PersistenceError(f"cannot open a store at scheme {scheme or '(none)'!r}: use one of {known}")


def _open_file(url: str) -> Persistence:
    from persistence.file import FilePersistence, directory_of

    try:
        return FilePersistence(directory_of(url))
    except ValueError as wrong:
        raise PersistenceError(str(wrong)) from None


def _open_sql(url: str) -> Persistence:
    try:
        from persistence.sql.store import SqlPersistence
    except ModuleNotFoundError:
        extras = "'jarvis-mesh[sqlite]', 'jarvis-mesh[postgres]' or 'jarvis-mesh[mysql]'"
        raise PersistenceError(f"SQLAlchemy is not installed: pip install {extras}") from None
    return SqlPersistence(url)


def _open_redis(url: str) -> Persistence:
    from persistence.redis import RedisPersistence, connect

    try:
        return RedisPersistence(connect(url))
    except ValueError as wrong:
        raise PersistenceError(str(wrong)) from None
