"""Reads the URL of a server, a Sentinel group or a cluster before the client library does, which passes over what it does
not understand.

``redis://``, ``rediss://`` (TLS) and ``unix://`` are the library's own. Ours begin with ``redis+`` or, for TLS, ``rediss+``::

    redis+sentinel://user:password@sentinel:26379,other:26379/service/0?option=…    the database may be left out
    redis+cluster://user:password@node:6379,other:6379/?option=…                    some of the nodes; the others are found

Options are named as the library names them (``socket_timeout``, ``ssl_ca_certs``); ``sentinel_username`` and
``sentinel_password`` are for the Sentinels themselves.
"""

from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlencode, urlsplit

__all__ = ["SCHEMES", "Address", "read_address"]

_SERVER = ("redis", "rediss", "unix")
_SENTINEL = ("redis+sentinel", "rediss+sentinel")
_CLUSTER = ("redis+cluster", "rediss+cluster")
SCHEMES = (*_SERVER, *_SENTINEL, *_CLUSTER)
"""What a URL may begin with."""

_SENTINEL_PORT = 26379
_SERVER_PORT = 6379
_SENTINEL_OPTIONS = {"sentinel_username": "username", "sentinel_password": "password"}

_PORT = "its port is not a number up to 65535 (in a password, percent-encode the characters / ? # @ : ,)"
_DATABASE = "its database is not a number"


@dataclass(frozen=True, slots=True)
class Address:
    """What a URL says. ``plain`` is a URL that the library reads, with the credentials, the database and the options."""

    plain: str
    hosts: tuple[tuple[str, int], ...] = ()
    service: str | None = None
    """The name by which the Sentinels know the primary; None where there are none."""
    sentinel_options: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_cluster(self) -> bool:
        """Whether the hosts are nodes of a cluster."""
        return bool(self.hosts) and self.service is None


def read_address(url: str) -> Address:
    """Raise ValueError that names the wrong part of a URL, and never repeats the URL, which may hold a password."""
    try:
        return _read(url)
    except _WrongPartError as wrong:
        raise ValueError(f"cannot use this Redis URL: {wrong}") from None


class _WrongPartError(Exception):
    """The part of a URL that is wrong, in words."""


def _read(url: str) -> Address:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _WrongPartError("its host is not valid") from None
    if parts.scheme in _SENTINEL:
        return _sentinel(parts)
    if parts.scheme in _CLUSTER:
        return _cluster(parts)
    if parts.scheme not in _SERVER:
        known = ", ".join(f"{name}://" for name in SCHEMES)
        raise _WrongPartError(f"its scheme {parts.scheme or '(none)'!r} is none of {known}")
    if parts.scheme == "unix":
        _check_socket(parts)
    else:
        _host(parts, _SERVER_PORT)
        _check_database(parts.path.removeprefix("/") or "0")
    return Address(url)


def _check_socket(parts: SplitResult) -> None:
    if not parts.path:
        raise _WrongPartError("it has no path to a socket (unix:///run/redis.sock)")
    _check_database(parse_qs(parts.query).get("db", ["0"])[0])


def _sentinel(parts: SplitResult) -> Address:
    service, _, database = parts.path.removeprefix("/").partition("/")
    if not service:
        raise _WrongPartError("it names no service (redis+sentinel://host:26379/service)")
    _check_database(database or "0")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    theirs = {name: options.pop(key) for key, name in _SENTINEL_OPTIONS.items() if key in options}
    return Address(_plain(parts, database or "0", options), _hosts(parts, _SENTINEL_PORT), unquote(service), theirs)


def _cluster(parts: SplitResult) -> Address:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.path.strip("/") not in ("", "0") or options.pop("db", "0") != "0":
        raise _WrongPartError("its database is not 0, and a cluster has no other")
    return Address(_plain(parts, "0", options), _hosts(parts, _SERVER_PORT))


def _plain(parts: SplitResult, database: str, options: dict[str, str]) -> str:
    """The same as the URL of one server. No connection is ever made to the host in it."""
    credentials, at, _ = parts.netloc.rpartition("@")
    return f"{parts.scheme.partition('+')[0]}://{credentials}{at}localhost/{database}?{urlencode(options)}"


def _hosts(parts: SplitResult, port: int) -> tuple[tuple[str, int], ...]:
    names = parts.netloc.rpartition("@")[2].split(",")
    if not all(names):
        raise _WrongPartError("it names no host, or has a comma too many between its hosts")
    return tuple(_host(urlsplit(f"//{name}"), port) for name in names)


def _host(parts: SplitResult, port: int) -> tuple[str, int]:
    try:
        return parts.hostname or "localhost", parts.port or port
    except ValueError:
        raise _WrongPartError(_PORT) from None


def _check_database(database: str) -> None:
    if not (database.isascii() and database.isdecimal()):
        raise _WrongPartError(_DATABASE)
