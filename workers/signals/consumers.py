"""The standing consumers of the bus: heartbeats are recorded, alerts delivered, signals given to runs that wait for them."""

import signal as signals
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bus import Signal, SignalConsumer
from workers.composition import Runtime
from workers.signals.alerts import AlertDelivery, check_addresses, send_with_apprise
from workers.signals.beats import BEAT_TOPIC, record_beat
from workers.signals.deliveries import DeliveryLedger
from workers.signals.two_ledgers import TwoLedgers

__all__ = [
    "ALERT_GROUP",
    "HEARTBEAT_GROUP",
    "SUBSCRIPTION_GROUP",
    "alert_consumer",
    "alert_delivery",
    "alert_delivery_here",
    "heartbeat_consumer",
    "run_consumers",
    "subscription_consumer",
]

HEARTBEAT_GROUP = "heartbeats"
ALERT_GROUP = "alerts"
SUBSCRIPTION_GROUP = "subscriptions"


def heartbeat_consumer(runtime: Runtime) -> SignalConsumer:
    """Records who was last seen when."""
    record = partial(record_beat, runtime.heartbeats)
    return _consumer(runtime, HEARTBEAT_GROUP, record, (BEAT_TOPIC,))


def alert_consumer(runtime: Runtime) -> SignalConsumer:
    """Delivers alerts to the addresses in the settings."""
    alerts = runtime.settings.alerts
    check_addresses(alerts.urls)
    return _consumer(runtime, ALERT_GROUP, alert_delivery(runtime), alerts.topics)


def alert_delivery(runtime: Runtime) -> AlertDelivery:
    """What brings alerts to the addresses in the settings, once."""
    alerts = runtime.settings.alerts
    stores = (runtime.deliveries, runtime.deliveries_here)
    ledgers = [DeliveryLedger(store, resend=alerts.resend_unknown) for store in stores]
    return AlertDelivery(TwoLedgers(*ledgers), alerts.urls, send_with_apprise)


def alert_delivery_here(runtime: Runtime) -> AlertDelivery:
    """The same without the server, for what is to be said while it is away."""
    alerts = runtime.settings.alerts
    ledger = DeliveryLedger(runtime.deliveries_here, resend=alerts.resend_unknown)
    return AlertDelivery(ledger, alerts.urls, send_with_apprise)


def subscription_consumer(runtime: Runtime) -> SignalConsumer:
    """Gives signals to the runs that wait for them."""
    return _consumer(runtime, SUBSCRIPTION_GROUP, runtime.subscriptions.hear, ("#",))


def _consumer(runtime: Runtime, group: str, handler: Callable[[Signal], None], topics: Sequence[str]) -> SignalConsumer:
    takeover_after = runtime.settings.takeover_after
    return SignalConsumer(runtime.signals, group, handler, topics=topics, takeover_after=takeover_after)


def run_consumers(runtime: Runtime) -> None:
    """Run all consumers until SIGTERM or SIGINT, then let each finish what it has in hand."""
    consumers = [heartbeat_consumer(runtime), alert_consumer(runtime), subscription_consumer(runtime)]

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
