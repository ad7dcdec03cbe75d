"""Alerts that reach a real HTTP endpoint and a real mail server, once, also when the consumer is killed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP

from mesh.watchdog import STALE_TOPIC, alert_key
from workers.signals.deliveries import DeliveryLedger

pytestmark = pytest.mark.processes

ALERT = {"agent": "bakery", "last_seen": None, "checked_at": "2026-11-30T07:00:00+00:00"}


@pytest.fixture
def endpoint() -> Iterator[Any]:
    """A web hook; ``received`` holds the bodies that were posted to it, ``status`` what it answers."""

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = server.status  # as it is before anybody sees that this one came
            server.received.append(json.loads(body))
            self.send_response(answer)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    server.received, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def mailbox() -> Iterator[Any]:
    """A mail server on loopback; ``received`` holds the messages that it took."""

    class Inbox:
        def __init__(self) -> None:
            self.received: list[str] = []
            self.port = 0

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 - the library's name
            self.received.append(envelope.content.decode())
            return "250 OK"

    inbox, loop = Inbox(), asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(lambda: SMTP(inbox, loop=loop), "127.0.0.1", 0))
    inbox.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield inbox
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def configured(mesh: Any, make_mesh: Any, monkeypatch: pytest.MonkeyPatch, *urls: str) -> Any:
    config = mesh.folder / "jarvis.toml"
    config.write_text(f"[alerts]\nurls = {json.dumps(urls)}\n")
    monkeypatch.setenv("JARVIS_CONFIG", str(config))
    return make_mesh(mesh.url)


def raise_alert(mesh: Any) -> str:
    key = alert_key("bakery", None)
    mesh.client.runtime.signals.publish(key, STALE_TOPIC, ALERT)
    return key


def test_an_alert_reaches_a_web_hook_and_a_mail_server(
    mesh: Any, make_mesh: Any, monkeypatch: pytest.MonkeyPatch, endpoint: Any, mailbox: Any, until: Any
) -> None:
    hook = f"json://127.0.0.1:{endpoint.server_port}/hook"
    mail = f"mailto://127.0.0.1:{mailbox.port}?from=jarvis@example.com&to=mara@example.com&mode=insecure"
    alerting = configured(mesh, make_mesh, monkeypatch, hook, mail)
    alerting.spawn("consumers", "-m", "workers", "consumers")

    raise_alert(alerting)
    raise_alert(alerting)

    until(lambda: endpoint.received and mailbox.received, "hook and mail server have it")
    until(lambda: _settled(alerting), "the consumer has settled the signal")
    assert [body["title"] for body in endpoint.received] == ["bakery has stopped"]
    assert len(mailbox.received) == 1
    assert "bakery has stopped" in mailbox.received[0]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_consumer_killed_before_sending_or_after_recording_leaves_one_alert(
    mesh: Any, make_mesh: Any, monkeypatch: pytest.MonkeyPatch, endpoint: Any, until: Any, moment: str
) -> None:
    alerting = configured(mesh, make_mesh, monkeypatch, f"json://127.0.0.1:{endpoint.server_port}/hook")
    raise_alert(alerting)
    killed = alerting.spawn("dying", "-m", "dying_consumer", moment)
    assert killed.popen.wait(60) == -9, killed.output()

    alerting.spawn("consumers", "-m", "workers", "consumers", JARVIS_TAKEOVER_AFTER="1")

    until(lambda: endpoint.received, "the alert arrives")
    until(lambda: _settled(alerting), "the signal is settled")
    assert len(endpoint.received) == 1


@pytest.mark.parametrize(("moment", "arrived"), [("sending", 0), ("sent", 1)])
def test_a_consumer_killed_while_it_sends_leaves_an_alert_that_is_not_repeated_and_said_to_be_unknown(
    mesh: Any, make_mesh: Any, monkeypatch: pytest.MonkeyPatch, endpoint: Any, until: Any, moment: str, arrived: int
) -> None:
    alerting = configured(mesh, make_mesh, monkeypatch, f"json://127.0.0.1:{endpoint.server_port}/hook")
    key = raise_alert(alerting)
    killed = alerting.spawn("dying", "-m", "dying_consumer", moment)
    assert killed.popen.wait(60) == -9, killed.output()

    consumers = alerting.spawn("consumers", "-m", "workers", "consumers", JARVIS_TAKEOVER_AFTER="1")

    until(lambda: "nobody knows whether an alert arrived" in consumers.output(), consumers.output)
    until(lambda: _settled(alerting), "the signal is settled")
    assert len(endpoint.received) == arrived
    assert DeliveryLedger(alerting.client.runtime.deliveries).unknown() == [key]


def test_an_address_that_does_not_take_an_alert_gets_it_later_and_the_others_not_again(
    mesh: Any, make_mesh: Any, monkeypatch: pytest.MonkeyPatch, endpoint: Any, mailbox: Any, until: Any
) -> None:
    endpoint.status = 500
    hook = f"json://127.0.0.1:{endpoint.server_port}/hook"
    mail = f"mailto://127.0.0.1:{mailbox.port}?from=jarvis@example.com&to=mara@example.com&mode=insecure"
    alerting = configured(mesh, make_mesh, monkeypatch, mail, hook)
    alerting.spawn("consumers", "-m", "workers", "consumers")

    raise_alert(alerting)
    until(lambda: endpoint.received, "the hook refuses it once")
    endpoint.status = 200

    until(lambda: _settled(alerting), "the signal is settled")
    assert len(mailbox.received) == 1
    assert len(endpoint.received) >= 2


def _settled(mesh: Any) -> bool:
    """Whether the group of alerts has nothing unread, in hand or waiting for another try."""
    groups = {group.name: group for group in mesh.client.runtime.signals.groups()}
    alerts = groups.get("alerts")
    return alerts is not None and (alerts.unread, alerts.pending, alerts.retrying) == (0, 0, 0)
