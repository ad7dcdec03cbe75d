"""An alert consumer that is killed at a chosen moment.

``before`` it sends, ``sending`` (before the alert is out), ``sent`` (out, and not recorded), or ``after`` it has recorded that.
"""

import os
import signal
import sys

from bus import Signal, SignalConsumer
from workers.composition import Runtime
from workers.settings import Settings
from workers.signals.alerts import AlertDelivery, send_with_apprise
from workers.signals.consumers import ALERT_GROUP
from workers.signals.deliveries import DeliveryLedger

runtime = Runtime(Settings.load())


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def send(address: str, title: str, body: str) -> bool:
    if sys.argv[1] == "sending":
        die()
    taken = send_with_apprise(address, title, body)
    if sys.argv[1] == "sent":
        die()
    return taken


deliver = AlertDelivery(DeliveryLedger(runtime.deliveries), runtime.settings.alerts.urls, send)


def handle(alert: Signal) -> None:
    if sys.argv[1] != "before":
        deliver(alert)
    die()


SignalConsumer(runtime.signals, ALERT_GROUP, handle, topics=runtime.settings.alerts.topics).drain()
