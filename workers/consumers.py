"""The standing consumers of the bus: heartbeats are recorded, alerts are delivered."""

import signal as signals
import threading
from functools import partial
from typing import Any

from bus import SignalConsumer
from workers.alerts import AlertDelivery, send_with_apprise
from workers.beats import BEAT_TOPIC, record_beat
from workers.composition import Runtime

__all__ = ["ALERT_GROUP", "HEARTBEAT_GROUP", "alert_consumer", "heartbeat_consumer", "run_consumers"]

HEARTBEAT_GROUP = "heartbeats"
ALERT_GROUP = "alerts"


def heartbeat_consumer(runtime: Runtime) -> SignalConsumer:
    """Records who was last seen when."""
    return SignalConsumer(runtime.signals, HEARTBEAT_GROUP, partial(record_beat, runtime.heartbeats), topics=(BEAT_TOPIC,))


def alert_consumer(runtime: Runtime) -> SignalConsumer:
    """Delivers alerts to the addresses in the settings."""
    alerts = runtime.settings.alerts
    deliver = AlertDelivery(runtime.deliveries, alerts.urls, send_with_apprise)
    return SignalConsumer(runtime.signals, ALERT_GROUP, deliver, topics=alerts.topics)


def run_consumers(runtime: Runtime) -> None:
    """Run all consumers until SIGTERM or SIGINT, then let each finish what it has in hand."""
    consumers = [heartbeat_consumer(runtime), alert_consumer(runtime)]

    def stop(*_: Any) -> None:
        for consumer in consumers:
            consumer.stop()

    for number in (signals.SIGTERM, signals.SIGINT):
        signals.signal(number, stop)
    threads = [threading.Thread(target=consumer.run, name=f"consumer-{place}") for place, consumer in enumerate(consumers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
