"""From a ``file:`` URL to a directory."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["directory_of"]


def directory_of(url: str) -> Path:
    """The directory that the URL names. Raises ValueError naming the part of the URL that is wrong."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _wrong("its host is malformed") from None
    if not url.startswith("file://"):
        raise _wrong("it lacks the slashes behind its scheme")
    if parts.netloc not in ("", "localhost"):
        raise _wrong(f"its host {parts.hostname!r} is not this machine, or a slash is missing in front of a path")
    if parts.query or parts.fragment:
        raise _wrong("it has options behind its path (in a path, percent-encode the characters ? and #)")
    path = unquote(parts.path, errors="surrogateescape")
    if not path.strip("/") or "\x00" in path:
        raise _wrong(f"its path {path!r} is not a directory for a store")
    return Path(path)


def _wrong(what: str) -> ValueError:
    return ValueError(f"cannot open a store at this URL: {what}; write file:///path/to/directory")
