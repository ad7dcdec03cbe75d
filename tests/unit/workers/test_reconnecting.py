"""How long a worker waits between two tries to reach its broker."""

from types import SimpleNamespace
from typing import Any

import kombu
from celery import Celery

from workers.broker.consuming import RECONNECT_SECONDS, MeshConsumer


class NotedConnection(kombu.Connection):
    """Notes how it is asked to try."""

    options: dict[str, Any]

    def ensure_connection(self, *args: Any, **options: Any) -> kombu.Connection:
        self.options = options
        return self


def test_a_server_that_is_back_is_found_within_seconds_however_long_it_was_away() -> None:
    worker = SimpleNamespace(use_eventloop=False)
    consumer = MeshConsumer(lambda request: None, app=Celery("t", broker="memory://"), controller=worker)
    connection = NotedConnection("memory://")
    assert consumer.ensure_connected(connection) is connection
    assert connection.options["interval_max"] == RECONNECT_SECONDS
    assert connection.options["interval_start"] <= RECONNECT_SECONDS
