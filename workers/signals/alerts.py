"""Alert delivery: signals that people should hear of, sent through Apprise, once for each signal and address.

Each delivery is recorded before it is made, and after it (`workers.signals.deliveries`). A consumer that dies before the first
record, or after the second, leaves a signal that the next one sends, or does not send again. If it dies in between, nobody
knows whether the alert arrived: the log and `jarvis doctor` say so, and it is sent again only where the settings ask for that.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol, cast

import apprise
import structlog

from bus import Signal
from workers.errors import SettingsError
from workers.history.telling import FAILED_TOPIC, STALLED_TOPIC, SUSPENDED_TOPIC
from workers.signals.deliveries import DeliveryState

__all__ = [
    "AWAY_TOPIC",
    "REFUSING_TOPIC",
    "AlertDelivery",
    "DeliveryFailedError",
    "Ledger",
    "Send",
    "alert_text",
    "check_addresses",
    "send_with_apprise",
]

Send = Callable[[str, str, str], bool]
"""Sends title and body to an address; whether the provider took it."""

REFUSING_TOPIC = "server.refuses"
"""The topic of the alert that the server takes no writes. It never was on the bus: the server would have to take it."""
AWAY_TOPIC = "server.away"
"""The same for a server that does not answer."""

_log = structlog.get_logger(__name__)


class DeliveryFailedError(Exception):
    """An address did not take the alert. The bus delivers the signal again later."""


class Ledger(Protocol):
    """What `workers.signals.deliveries.DeliveryLedger` does."""

    def begin(self, signal_id: str, route: str, on_unknown: Callable[[], None] = ...) -> Any | None:
        """The attempt, recorded before it is made; None when there is to be none."""
        ...

    def end(self, attempt: Any, state: DeliveryState) -> None:
        """Record how the attempt ended."""
        ...


class AlertDelivery:
    """The handler of the alert consumer."""

    def __init__(self, ledger: Ledger, addresses: Sequence[str], send: Send) -> None:
        self._ledger = ledger
        self._addresses = addresses
        self._send = send

    def __call__(self, signal: Signal) -> None:
        """Send the alert to every address that has not had it. Raises `DeliveryFailedError` when one does not take it."""
        title, body = alert_text(signal)
        failed = [address for address in self._addresses if not self._deliver(signal, address, title, body)]
        if failed:
            raise DeliveryFailedError(f"{len(failed)} of {len(self._addresses)} addresses did not take alert {signal.id!r}")

    def _deliver(self, signal: Signal, address: str, title: str, body: str) -> bool:
        # The address holds credentials: only its hash is stored, and neither is logged.
        route, scheme = sha256(address.encode()).hexdigest(), address.partition(":")[0]
        attempt = self._ledger.begin(signal.id, route, lambda: _say_unknown(signal, scheme))
        if attempt is None:
            return True
        taken = False
        try:
            taken = self._send(address, title, body)
        except Exception:
            self._ledger.end(attempt, DeliveryState.FAILED)
            raise
        self._ledger.end(attempt, DeliveryState.SENT if taken else DeliveryState.FAILED)
        if taken:
            _log.info("alert delivered", signal=signal.id, scheme=scheme)
        return taken


def _say_unknown(signal: Signal, scheme: str) -> None:
    _log.error(
        "nobody knows whether an alert arrived: its sender ended while it sent; look there, or set [alerts] resend_unknown",
        signal=signal.id,
        scheme=scheme,
    )


def alert_text(signal: Signal) -> tuple[str, str]:
    """Title and body of an alert, for people."""
    if signal.topic in _RUNS:
        return _run_text(signal)
    if signal.topic in _SERVER:
        title, last = _SERVER[signal.topic]
        lost = "No run goes on, no alert is published, and nobody can tell who has stopped since."
        return title, f"{signal.payload['trouble']}\n{last} {signal.payload['since']}. {lost}"
    agent, seen = signal.payload.get("agent"), signal.payload.get("last_seen")
    if agent is None:
        return signal.topic, "\n".join(f"{key}: {value}" for key, value in signal.payload.items())
    body = f"It was last seen at {seen}." if seen else "It has never been seen."
    return f"{agent} has stopped", f"{body} Checked at {signal.payload.get('checked_at')}."


_SERVER = {
    REFUSING_TOPIC: ("The server takes no writes", "It last took one at"),
    AWAY_TOPIC: ("The server does not answer", "It last did at"),
}
"""What has become of the server, by topic."""
_RUNS = {
    FAILED_TOPIC: ("failed", "It is not tried again by itself: `jarvis runs retry {}` takes it up where it failed."),
    STALLED_TOPIC: ("stands still", "Look into it; `jarvis runs retry {}` has it tried again."),
    SUSPENDED_TOPIC: ("waits for you", "`jarvis runs show {}` shows the question, and how to answer it."),
}
"""What became of a run, and what a person can do, by topic."""


def _run_text(signal: Signal) -> tuple[str, str]:
    what, remedy = _RUNS[signal.topic]
    told = signal.payload
    workflow_id = str(told.get("workflow_id"))
    asked = cast(Mapping[str, Any], told.get("waits_for") or {}).get("message")
    lines = [
        str(asked or ""),
        ": ".join(str(told[key]) for key in ("error", "message") if told.get(key)),
        f"Step {told['step']}, attempt {told.get('attempt')}, at {told.get('at')}." if told.get("step") else "",
        remedy.format(shlex.quote(workflow_id)),
    ]
    return f"{workflow_id} {what}", "\n".join(line for line in lines if line)


def check_addresses(addresses: Sequence[str]) -> None:
    """Raise `SettingsError` for the first address that Apprise does not know, by its place: it may hold a secret."""
    for place, address in enumerate(addresses, 1):
        if not apprise.Apprise().add(address):
            raise SettingsError(f"[alerts] urls: the address number {place} is none that Apprise knows: correct it")


def send_with_apprise(address: str, title: str, body: str) -> bool:
    """Send through Apprise, which knows a hundred kinds of address."""
    sender = apprise.Apprise()
    return bool(sender.add(address)) and bool(sender.notify(title=title, body=body))
