"""From a URL, an engine or a connection to what the store works with; the part that is wrong is named."""

from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from persistence.errors import PersistenceError
from persistence.sql.dialects import NAMES, dialect_of

__all__ = ["CONNECT_TIMEOUT", "REPLY_TIMEOUT", "check_engine", "open_engine"]

CONNECT_TIMEOUT = 3
"""Seconds to wait for a connection."""
REPLY_TIMEOUT = 30
"""Seconds to wait for a reply of MariaDB or MySQL, and for the writer lock of SQLite."""

_EXTRAS = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": REPLY_TIMEOUT},
    "postgresql": {"connect_timeout": CONNECT_TIMEOUT, "keepalives_idle": 10, "tcp_user_timeout": REPLY_TIMEOUT * 1000},
    "mysql": {"connect_timeout": CONNECT_TIMEOUT, "read_timeout": REPLY_TIMEOUT, "write_timeout": REPLY_TIMEOUT},
}
_OPTIONS["mariadb"] = _OPTIONS["mysql"]


def open_engine(url: str | URL) -> Engine:
    """An engine with our options for a URL; connects at the first call.

    Raises `PersistenceError` that names the wrong part of the URL, and never repeats the URL, which may hold a password.
    """
    address = _parsed(url)
    backend = address.get_backend_name()
    address = address.set(drivername=f"{backend}+{NAMES[backend]}")
    options = {name: value for name, value in _OPTIONS[backend].items() if name not in address.query}
    try:
        engine = create_engine(
            address,
            connect_args=options,
            isolation_level="AUTOCOMMIT",  # transactions are begun by our own words, and reads need none
            pool_reset_on_return=None,
            skip_autocommit_rollback=True,
            hide_parameters=True,
        )
    except ImportError:
        raise PersistenceError(_missing(backend)) from None
    except (ArgumentError, TypeError, ValueError):
        raise PersistenceError("cannot use this SQL URL: an option in its query is wrong") from None
    check_engine(engine)
    _apply_settings(engine)
    return engine


def check_engine(engine: Engine) -> None:
    """Raise `PersistenceError` for an engine whose database or driver the store does not know."""
    name, driver = engine.dialect.name, engine.dialect.driver
    if NAMES.get(name) != driver:
        raise PersistenceError(f"cannot store by {name}+{driver}: use one of {_known()}")
    if name == "sqlite" and engine.url.database in (None, "", ":memory:"):
        raise PersistenceError("a SQLite database in memory is gone with its connection: name a file, or use memory://")


def _parsed(url: str | URL) -> URL:
    try:
        address = make_url(url)
    except ArgumentError:
        raise PersistenceError("cannot use this SQL URL: its form is not dialect+driver://user:password@host/name") from None
    except ValueError:
        raise PersistenceError("cannot use this SQL URL: its port is not a number") from None
    backend, _, driver = address.drivername.partition("+")
    if backend not in NAMES:
        raise PersistenceError(f"cannot use this SQL URL: its dialect {backend!r} is not known; use one of {_known()}")
    if driver and driver != NAMES[backend]:
        raise PersistenceError(f"cannot use this SQL URL: its driver is {driver!r}; use {backend}+{NAMES[backend]}")
    if backend == "sqlite" and not set(address.query) <= {"timeout"}:
        raise PersistenceError("cannot use this SQL URL: the only option in the query of a sqlite URL is timeout")
    if backend != "sqlite" and not address.database:
        raise PersistenceError("cannot use this SQL URL: it names no database (…@host/name)")
    return address


def _known() -> str:
    return "sqlite://, postgresql+psycopg://, mysql+pymysql://, mariadb+pymysql://"


def _missing(backend: str) -> str:
    return f"the driver {NAMES[backend]!r} is not installed: pip install 'jarvis-mesh[{_EXTRAS[backend]}]'"


def _apply_settings(engine: Engine) -> None:
    settings = dialect_of(engine).settings
    if not settings:
        return

    def connected(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(settings)
        cursor.close()

    event.listen(engine, "connect", connected)
