"""What an error of a database means: whether trying again may help, and what to do, in words that hold no data."""

from enum import Enum

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

__all__ = ["Trouble", "advice", "cause_of", "kind_of", "leaves_doubt", "words_of"]


class Trouble(Enum):
    """Kinds of trouble, by what a caller may do."""

    UNREACHABLE = "unreachable"
    """No connection, or it broke: try again on a new one."""
    CONTENTION = "contention"
    """The database gave up this transaction for another's sake and undid it: try again."""
    REFUSED = "refused"
    """Trying again would be refused again."""


_CONTENTION = {
    *("40001", "40P01", "55P03"),  # PostgreSQL: serialization failure, deadlock, lock timeout
    *("1020", "1205", "1213", "3572"),  # MariaDB, MySQL: snapshot, lock wait timeout, deadlock, no wait
}
_UNREACHABLE = {
    *("57P01", "57P02", "57P03", "25P03", "53300"),  # PostgreSQL: going down, crashed, starting, idle for too long, full
    *("1040", "1053", "1080", "1203", "1927", "2002", "2003", "2006", "2013", "2055"),
}
_STARTING = ("starting up", "shutting down", "recovery mode", "too many clients", "terminating connection")
"""Refusals of a connection by PostgreSQL that pass; its driver has no code for them."""

_ADVICE = {
    "42501": "this user of the database lacks a right ({}): GRANT SELECT, INSERT, UPDATE, DELETE on the store's tables",
    "25006": "the database takes no writes ({}): point the URL at the primary",
    "53100": "the disk of the database is full ({}): free space; nothing was written",
    "1044": "this user lacks a right to the database ({}): grant it, or correct the name in the URL",
    "1045": "the database refused these credentials ({}): correct user and password in the URL",
    "1049": "this database does not exist ({}): create it, or correct the name in the URL",
    "1698": "the database refused these credentials ({}): correct user and password in the URL",
    "1142": "this user of the database lacks a right ({}): GRANT SELECT, INSERT, UPDATE, DELETE on the store's tables",
    "1153": "the write is larger than the server takes ({}): raise max_allowed_packet",
    "1290": "the database takes no writes ({}): point the URL at the primary",
    "SQLITE_READONLY": "the database file takes no writes ({}): give this user the right to its file and folder",
    "SQLITE_CANTOPEN": "the database file cannot be opened ({}): create its folder, or correct the path in the URL",
    "SQLITE_FULL": "the disk is full ({}): free space; nothing was written",
    "SQLITE_NOTADB": "the file is not a SQLite database ({}): correct the path in the URL",
    "SQLITE_CORRUPT": "the database file is damaged ({}): restore it from a backup",
    "SQLITE_IOERR": "the disk failed under the database file ({}): repair it; whether the write took effect is unknown",
}
_MISSING = {"42P01", "42703", "1146", "1054"}
_MISSING_WORDS = ("no such table", "no such column", "has no column named")
_MISSING_ADVICE = "the store's tables are missing or not ours ({}): call create_schema(), or run the statements of ddl()"
_BY_WORDS = {
    "password authentication failed": "the database refused these credentials ({}): correct user and password in the URL",
    "no pg_hba.conf entry": "the database refused this host or user ({}): allow it in pg_hba.conf",
    '" does not exist': "the database refused the connection ({}): create what is missing, or correct the URL",
    "invalid connection option": "an option in the query of the URL is wrong ({}): correct it",
    "unexpected keyword argument": "an option in the query of the URL is wrong ({}): correct it",
}


def kind_of(trouble: SQLAlchemyError) -> Trouble:
    """Whether trying again may help."""
    code, words = _code(trouble), str(cause_of(trouble))
    if code in _CONTENTION or code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Trouble.CONTENTION
    if isinstance(trouble, DBAPIError) and (trouble.connection_invalidated or _breaks(code)):
        return Trouble.UNREACHABLE
    if not code and isinstance(trouble, OperationalError):
        lasting = "FATAL" in words and not any(passing in words for passing in _STARTING)
        return Trouble.REFUSED if lasting else Trouble.UNREACHABLE
    return Trouble.REFUSED


def _breaks(code: str) -> bool:
    return code in _UNREACHABLE or (len(code) == 5 and code.startswith("08"))  # a class of SQLSTATE


def leaves_doubt(trouble: SQLAlchemyError) -> bool:
    """Whether a refusal may have come after the write took effect: a file's own disk failed, maybe at its end."""
    return _code(trouble).startswith("SQLITE_IOERR")


def advice(trouble: SQLAlchemyError, address: str) -> str:
    """One line on what went wrong, and what to do about it."""
    code, words = _code(trouble), words_of(trouble)
    if isinstance(trouble, PoolTimeoutError):
        return "all connections of the engine are in use: raise its pool_size, or use fewer threads"
    if kind_of(trouble) is Trouble.UNREACHABLE:
        return f"no answer from the database at {address}: start it or correct its URL ({words})"
    if kind_of(trouble) is Trouble.CONTENTION:
        return f"the database keeps giving way to other transactions ({words}): try again; nothing was written"
    if code in _MISSING or any(missing in words for missing in _MISSING_WORDS):
        return _MISSING_ADVICE.format(words)
    for begin, told in _ADVICE.items():
        if code == begin or (begin.startswith("SQLITE") and code.startswith(begin)):
            return told.format(words)
    for part, told in _BY_WORDS.items():
        if part in words:
            return told.format(words)
    return f"the database refused the statement: {words}"


def cause_of(trouble: BaseException) -> BaseException:
    """The driver's own error, which holds neither statement nor values."""
    return (trouble.orig if isinstance(trouble, DBAPIError) else None) or trouble


def _code(trouble: SQLAlchemyError) -> str:
    """SQLSTATE of PostgreSQL, number of MariaDB and MySQL, or name of SQLite; empty where there is none."""
    cause = cause_of(trouble)
    if cause.args and isinstance(cause.args[0], int):
        return str(cause.args[0])
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None) or "")


def words_of(trouble: SQLAlchemyError) -> str:
    """What the database said, in one line."""
    cause = cause_of(trouble)
    said = cause.args[1:2] if cause.args and isinstance(cause.args[0], int) else ()
    return " ".join(str(said[0] if said else cause).split())
