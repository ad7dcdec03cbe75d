"""Whether a service answers: over HTTP with the status it should have, or over TCP at all.

A service that does not answer is news, not a gap: the check itself was done.
"""

from __future__ import annotations

import datetime as dt
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from mesh.sources.fetch import Fetcher, FetchError
from mesh.sources.item import Item, Kind, Reading, Severity
from mesh.sources.text import clean
from mesh.sources.window import Window

CHECK_TIMEOUT_SECONDS = 5.0

Probe = Callable[[], str | None]
"""Asks a service once. Returns None when it is well, otherwise what is wrong with it. Never raises."""


class CheckSource:
    """One service. `place` says where it was asked; `clock` returns aware times, `monotonic` seconds."""

    def __init__(
        self,
        name: str,
        place: str,
        probe: Probe,
        clock: Callable[[], dt.datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._place = place
        self._probe = probe
        self._clock = clock
        self._monotonic = monotonic

    def read(self, window: Window) -> Reading:
        """Ask the service and return one item: it is up, and how fast it answered, or it is down, and why.

        It is asked now, whatever day the briefing is for; the item carries the moment of asking.
        """
        asked_at, begun = self._clock(), self._monotonic()
        trouble = self._probe()
        milliseconds = (self._monotonic() - begun) * 1000
        item = Item(
            kind=Kind.CHECK,
            text=f"{self.name}: {trouble or f'answered in {milliseconds:.0f} ms'}",
            source=f"check of {self._place}",
            key=self.name,
            at=asked_at,
            severity=Severity.CRITICAL if trouble else Severity.INFO,
        )
        return Reading(items=(item,))


def http_place(url: str) -> str:
    """Return the host of an address: the rest may hold a password or a token."""
    return urlsplit(url).hostname or "an address"


def http_probe(fetcher: Fetcher, url: str, *, expect: int, timeout: float) -> Probe:
    """Return a probe that wants the status `expect`. Redirects are followed, unless one is what is expected."""

    def probe() -> str | None:
        try:
            status = fetcher.status(url, timeout=timeout, follow=not 300 <= expect < 400)
        except FetchError as error:
            return str(error)
        return None if status == expect else f"answered with status {status} instead of {expect}"

    return probe


def tcp_probe(host: str, port: int, *, timeout: float) -> Probe:
    """Return a probe that is content when a connection can be made."""

    def probe() -> str | None:
        try:
            with socket.create_connection((host, port), timeout=timeout):
                return None
        except TimeoutError:
            return f"no answer within {timeout:g} s"
        except (OSError, UnicodeError) as error:
            # UnicodeError is what a host name with an empty or an overlong label gives.
            return clean(getattr(error, "strerror", None) or str(error), 120).lower()

    return probe
