"""The edge to foreign servers and to files: bytes within a time and a size, or one line that says why not.

Everything that reads over HTTP goes through here. Reasons never hold the address: it may carry a password or a token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx2

from mesh.sources.text import clean

TIMEOUT_SECONDS = 10.0
"""For one answer as a whole, from the first connection to the last byte."""

MAX_BYTES = 8 * 1024 * 1024
MAX_REDIRECTS = 5
HEADERS = {"User-Agent": "jarvis-mesh", "Accept": "*/*"}


class FetchError(Exception):
    """Raised by a fetch that gave nothing usable. The message is the reason of a gap, in a few words."""


@dataclass(frozen=True, slots=True)
class Document:
    """The bytes of a feed or a calendar, and what the server said about them (header names in lower case)."""

    content: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])


class Fetcher:
    """Reads addresses and files. Used by many threads at once; a context manager that closes its connections."""

    def __init__(
        self,
        *,
        transport: httpx2.BaseTransport | None = None,
        timeout: float = TIMEOUT_SECONDS,
        max_bytes: int = MAX_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take a `transport` in place of the network (for tests), the limits, and a clock that only runs forward."""
        self._client = httpx2.Client(transport=transport, timeout=timeout, headers=HEADERS, max_redirects=MAX_REDIRECTS)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._monotonic = monotonic

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def read(self, location: str | Path) -> Document:
        """Return what stands at an address (text) or in a file (path). Raises `FetchError` with the reason."""
        return self._from_file(location) if isinstance(location, Path) else self._from_server(location)

    def status(self, url: str, *, timeout: float, follow: bool) -> int:
        """Return the HTTP status of `url` without reading its content. Raises `FetchError` when nobody answers."""
        try:
            with self._client.stream("GET", url, timeout=timeout, follow_redirects=follow) as answer:
                return answer.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise FetchError(_reason(error, timeout)) from error

    def _from_server(self, url: str) -> Document:
        deadline = self._monotonic() + self._timeout
        try:
            with self._client.stream("GET", url, follow_redirects=True) as answer:
                if not answer.is_success:
                    raise FetchError(f"the server answered {answer.status_code} {answer.reason_phrase}".strip())
                return Document(self._body(answer.iter_bytes(), deadline), _described(answer))
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise FetchError(_reason(error, self._timeout)) from error

    def _body(self, chunks: Iterator[bytes], deadline: float) -> bytes:
        """Return the chunks together. The client's own time-out starts afresh with each of them; this one does not."""
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > self._max_bytes:
                raise FetchError(self._too_large())
            if self._monotonic() > deadline:
                raise FetchError(f"not finished within {self._timeout:g} s")
        return bytes(body)

    def _from_file(self, path: Path) -> Document:
        # A named pipe or a device would never end.
        if not path.is_file():
            raise FetchError(f"there is no file {path}")
        try:
            with path.open("rb") as file:
                content = file.read(self._max_bytes + 1)
        except OSError as error:
            raise FetchError(f"cannot read {path}: {error.strerror}") from error
        if len(content) > self._max_bytes:
            raise FetchError(self._too_large())
        return Document(content)

    def _too_large(self) -> str:
        return f"larger than {self._max_bytes / 1024 / 1024:g} MB"


def _described(answer: httpx2.Response) -> dict[str, str]:
    """Return the headers that say how to read the content, with the address it finally came from."""
    described = {"content-location": str(answer.url)}
    if "content-type" in answer.headers:
        described["content-type"] = answer.headers["content-type"]
    return described


def _reason(error: Exception, timeout: float) -> str:
    """Return a fault of the connection in words."""
    match error:
        case httpx2.TimeoutException():
            return f"no answer within {timeout:g} s"
        case httpx2.ConnectError():
            return f"cannot connect: {clean(str(error), 120)}"
        case httpx2.TooManyRedirects():
            return f"more than {MAX_REDIRECTS} redirects"
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return "sent to an address that is not HTTP"
        case _:
            return f"the connection broke off ({type(error).__name__})"
