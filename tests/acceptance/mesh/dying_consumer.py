"""An alert consumer that is killed at a chosen moment: ``before`` it sends, or ``after`` it has recorded the delivery."""

import os
import signal
import sys

from bus import Signal, SignalConsumer
from workers.composition import Runtime
from workers.settings import Settings
from workers.signals.alerts import AlertDelivery, send_with_apprise
from workers.signals.consumers import ALERT_GROUP

runtime = Runtime(Settings.load())
deliver = AlertDelivery(runtime.deliveries, runtime.settings.alerts.urls, send_with_apprise)


def handle(alert: Signal) -> None:
    if sys.argv[1] == "after":
        deliver(alert)
    os.kill(os.getpid(), signal.SIGKILL)


SignalConsumer(runtime.signals, ALERT_GROUP, handle, topics=runtime.settings.alerts.topics).drain()
