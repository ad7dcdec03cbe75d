"""Checks the URL of a server before the client library reads it, which passes over what it does not understand."""

from urllib.parse import SplitResult, parse_qs, urlsplit

__all__ = ["SCHEMES", "check_url"]

SCHEMES = ("redis", "rediss", "unix")
"""What a URL may begin with: plain, by TLS, by unix socket."""

_PORT = "its port is not a number up to 65535 (in a password, percent-encode the characters / ? # @ :)"


def check_url(url: str) -> None:
    """Raise ValueError that names the wrong part of a URL, and never repeats the URL, which may hold a password."""
    wrong = _wrong_part(url)
    if wrong:
        raise ValueError(f"cannot use this Redis URL: {wrong}")


def _wrong_part(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its host is not valid"
    if parts.scheme not in SCHEMES:
        return f"its scheme {parts.scheme or '(none)'!r} is none of {', '.join(f'{name}://' for name in SCHEMES)}"
    return _wrong_socket(parts) if parts.scheme == "unix" else _wrong_host(parts)


def _wrong_socket(parts: SplitResult) -> str | None:
    if not parts.path:
        return "it has no path to a socket (unix:///run/redis.sock)"
    return _wrong_database(parse_qs(parts.query).get("db", ["0"])[0])


def _wrong_host(parts: SplitResult) -> str | None:
    try:
        parts.port  # noqa: B018 - read for the error that it raises
    except ValueError:
        return _PORT
    return _wrong_database(parts.path.removeprefix("/") or "0")


def _wrong_database(database: str) -> str | None:
    return None if database.isascii() and database.isdecimal() else "its database is not a number"
