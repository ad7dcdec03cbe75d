"""Whether a service answers."""

from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Callable, Iterator

import httpx2
import pytest

from mesh.sources.checks import CheckSource, http_place, http_probe, tcp_probe
from mesh.sources.fetch import Fetcher
from mesh.sources.item import Severity
from mesh.sources.window import Window

NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


@pytest.fixture
def listening_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def answering(status: int, location: str = "") -> Fetcher:
    """Make a fetcher whose network answers everything but /moved with 200, and /moved with `status`."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        moved = request.url.path == "/moved"
        return httpx2.Response(status if moved else 200, headers={"location": location} if location and moved else {})

    return Fetcher(transport=httpx2.MockTransport(answer))


def test_a_service_that_is_well_is_up_with_its_latency(window: Callable[..., Window]) -> None:
    ticks = iter([1.0, 1.012])
    source = CheckSource("Shop", "shop.example", lambda: None, lambda: NOW, lambda: next(ticks))
    [item] = source.read(window()).items

    assert (item.text, item.source, item.at) == ("Shop: answered in 12 ms", "check of shop.example", NOW)
    assert item.severity is Severity.INFO


def test_a_service_that_is_not_is_down_with_the_reason(window: Callable[..., Window]) -> None:
    [item] = CheckSource("Shop", "shop.example", lambda: "it burns", lambda: NOW).read(window()).items

    assert (item.text, item.severity) == ("Shop: it burns", Severity.CRITICAL)


def test_http_wants_the_expected_status() -> None:
    with answering(500) as fetcher:
        assert http_probe(fetcher, "https://shop.example/", expect=200, timeout=1)() is None
        assert (
            http_probe(fetcher, "https://shop.example/moved", expect=200, timeout=1)()
            == "answered with status 500 instead of 200"
        )


def test_redirects_are_followed_unless_one_is_expected() -> None:
    with answering(301, "https://shop.example/there") as fetcher:
        assert http_probe(fetcher, "https://shop.example/moved", expect=200, timeout=1)() is None
        assert http_probe(fetcher, "https://shop.example/moved", expect=301, timeout=1)() is None


def test_http_without_an_answer_says_why() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("[Errno 111] Connection refused", request=request)

    with Fetcher(transport=httpx2.MockTransport(refuse)) as fetcher:
        probe = http_probe(fetcher, "https://user:secret@shop.example/?token=secret", expect=200, timeout=1)

        assert probe() == "cannot connect: [Errno 111] Connection refused"


def test_tcp_is_content_with_a_connection(listening_port: int) -> None:
    assert tcp_probe("127.0.0.1", listening_port, timeout=2)() is None


def test_tcp_to_a_closed_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]

    assert tcp_probe("127.0.0.1", closed, timeout=2)() == "connection refused"


@pytest.mark.parametrize("host", ["a" * 70, "a..b"])
def test_a_host_that_cannot_be_is_a_reason_too(host: str) -> None:
    assert tcp_probe(host, 80, timeout=1)()


def test_the_place_of_a_check_holds_no_secret() -> None:
    assert http_place("https://user:secret@shop.example/?token=secret") == "shop.example"
