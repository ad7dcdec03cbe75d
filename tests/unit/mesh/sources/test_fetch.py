"""Reading over HTTP and from files within limits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from mesh.sources.fetch import Fetcher, FetchError

SECRET = "https://user:secret@paper.example/feed?token=secret"


def served_by(answer: Callable[[httpx2.Request], httpx2.Response], **limits: float) -> Fetcher:
    return Fetcher(transport=httpx2.MockTransport(answer), **limits)  # pyright: ignore[reportArgumentType]


def raising(error: type[httpx2.RequestError]) -> Callable[[httpx2.Request], httpx2.Response]:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise error(f"details with {SECRET}", request=request)

    return answer


def test_the_content_comes_with_its_type_and_its_final_address() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/old":
            return httpx2.Response(301, headers={"location": "/new"})
        return httpx2.Response(200, content=b"<rss/>", headers={"Content-Type": "text/xml"})

    with served_by(answer) as fetcher:
        document = fetcher.read("https://paper.example/old")

    assert document.content == b"<rss/>"
    assert document.headers == {"content-location": "https://paper.example/new", "content-type": "text/xml"}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (httpx2.ConnectTimeout, "no answer within 10 s"),
        (httpx2.ReadTimeout, "no answer within 10 s"),
        (httpx2.RemoteProtocolError, "the connection broke off (RemoteProtocolError)"),
        (httpx2.DecodingError, "the connection broke off (DecodingError)"),
        (httpx2.UnsupportedProtocol, "sent to an address that is not HTTP"),
    ],
)
def test_every_fault_of_the_connection_has_a_reason_without_the_address(error: type[httpx2.RequestError], reason: str) -> None:
    with served_by(raising(error)) as fetcher, pytest.raises(FetchError) as raised:
        fetcher.read(SECRET)

    assert str(raised.value) == reason


@pytest.mark.parametrize("status", [204, 304, 401, 404, 500])
def test_a_status_that_brings_nothing_is_a_reason_or_empty_content(status: int) -> None:
    with served_by(lambda request: httpx2.Response(status)) as fetcher:
        if status == 204:
            assert fetcher.read(SECRET).content == b""
        else:
            with pytest.raises(FetchError, match=f"the server answered {status}"):
                fetcher.read(SECRET)


def test_redirects_in_a_circle_end() -> None:
    with (
        served_by(lambda request: httpx2.Response(302, headers={"location": "/"})) as fetcher,
        pytest.raises(FetchError, match="more than 5 redirects"),
    ):
        fetcher.read(SECRET)


def test_too_much_content_is_cut_off_while_it_comes() -> None:
    sent: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            sent.append(1)
            yield b"x" * 1024

    with (
        served_by(lambda request: httpx2.Response(200, content=endless()), max_bytes=10 * 1024) as fetcher,
        pytest.raises(FetchError, match="larger than"),
    ):
        fetcher.read(SECRET)

    assert len(sent) <= 12


def test_a_server_that_drips_is_given_up() -> None:
    clock = iter(range(0, 1000, 4))

    def dripping() -> Iterator[bytes]:
        while True:
            yield b"x"

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=dripping()))
    with (
        Fetcher(transport=transport, timeout=10, monotonic=lambda: next(clock)) as fetcher,
        pytest.raises(FetchError, match="not finished within 10 s"),
    ):
        fetcher.read(SECRET)


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "feed.xml"
    path.write_bytes(b"x" * 11)

    with Fetcher() as fetcher:
        assert fetcher.read(path).content == b"x" * 11
    with Fetcher(max_bytes=10) as fetcher, pytest.raises(FetchError, match="larger than"):
        fetcher.read(path)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with Fetcher() as fetcher:
        for path in (pipe, tmp_path, tmp_path / "nothing"):
            with pytest.raises(FetchError, match="there is no file"):
                fetcher.read(path)
