"""What people are told straight away, since no bus can carry it: that the server takes no writes, and who was silent by then.

A server that is full, or cannot save, still answers: but no sweep is recorded, no alert is published and no beat noted. So
agents are judged by the last moment at which a write was taken; nobody can tell who has stopped since. Their alerts bear the
ids that a sweep would give them, so that the next one does not repeat them.

partition  key           value
server     takes writes  the moment of the last look at which it did, ISO 8601
"""

import datetime as dt
from collections.abc import Callable

import structlog

from bus import Signal
from bus.topics import matches_any
from mesh.errors import MeshError
from mesh.watchdog import STALE_TOPIC, alert_key, is_stale
from persistence import PersistenceError, UnreachableError
from workers.composition import Runtime
from workers.signals.alerts import REFUSING_TOPIC, DeliveryFailedError
from workers.signals.consumers import alert_delivery

__all__ = ["Outcry"]

_PLACE = ("server", "takes writes")

_log = structlog.get_logger(__name__)


class Outcry:
    """Looks whether the server takes writes. ``deliver`` brings an alert to people, once."""

    def __init__(self, runtime: Runtime, deliver: Callable[[Signal], None] | None = None) -> None:
        self._runtime = runtime
        self._deliver = deliver or alert_delivery(runtime)
        self._troubled = False

    def look_patiently(self) -> None:
        """`look`; trouble is said once, and raises nothing."""
        try:
            self._troubled = not self.look()
        except (PersistenceError, MeshError) as trouble:
            if not self._troubled:
                _log.warning("cannot look whether the server takes writes", trouble=str(trouble))
            self._troubled = True

    def look(self) -> bool:
        """Whether the server takes writes; if not, people have been told. Raises `UnreachableError` without a server."""
        store, now = self._runtime.deliveries, self._runtime.clock.now()
        held = store.get(*_PLACE)
        try:
            if held is None:
                store.initialize_if_absent(*_PLACE, now.isoformat().encode())
            else:
                store.write_if_unchanged(*_PLACE, held, {_PLACE[1]: now.isoformat().encode()})
        except UnreachableError:
            raise
        except PersistenceError as refusal:
            if not self._troubled:
                _log.error("the server takes no writes", trouble=str(refusal))
            self._cry(str(refusal), None if held is None else dt.datetime.fromisoformat(held.decode()), now)
            return False
        return True

    def _cry(self, refusal: str, since: dt.datetime | None, now: dt.datetime) -> None:
        when = "never" if since is None else since.isoformat()
        self._tell(f"{REFUSING_TOPIC}/{when}", REFUSING_TOPIC, {"since": when, "trouble": refusal})
        watchdog, alerts = self._runtime.settings.watchdog, self._runtime.settings.alerts
        for agent in watchdog.agents if matches_any(alerts.topics, STALE_TOPIC) else ():
            seen = self._runtime.heartbeats.last_seen(agent)
            if is_stale(seen, since or now, watchdog.stale_after_seconds):
                told = {"last_seen": None if seen is None else seen.isoformat(), "checked_at": now.isoformat()}
                self._tell(alert_key(agent, seen), STALE_TOPIC, {"agent": agent, **told})

    def _tell(self, signal_id: str, topic: str, payload: dict[str, str | None]) -> None:
        try:
            self._deliver(Signal(signal_id, topic, payload))
        except (DeliveryFailedError, PersistenceError) as trouble:
            _log.warning("an alert did not go out; the next look tries again", signal=signal_id, trouble=str(trouble))
