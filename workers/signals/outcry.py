"""What people are told straight away, since no bus can carry it: that the server is away, or takes no writes.

A server that is full, or cannot save, still answers: but no sweep is recorded, no alert is published and no beat noted. So
agents are judged by the last moment at which a write was taken; nobody can tell who has stopped since. Their alerts bear the
ids that a sweep would give them, so that the next one does not repeat them. Of a server that does not answer people are told
once it has been away for as long as an agent may be silent; that is recorded on this machine alone.

Both are kept beside the deliveries, in a partition with a tab in its name, which no signal id has:

store  partition   key           value
all    TAB server  takes writes  the moment of the last look at which it did, ISO 8601
here   TAB server  answers       the moment of the last look at which it did, ISO 8601
"""

import datetime as dt
from collections.abc import Callable

import structlog

from bus import Signal
from bus.topics import matches_any
from mesh.errors import MeshError
from mesh.watchdog import STALE_TOPIC, alert_key, is_stale
from persistence import Persistence, PersistenceError, UnreachableError
from workers.composition import Runtime
from workers.signals.alerts import AWAY_TOPIC, REFUSING_TOPIC, DeliveryFailedError
from workers.signals.consumers import alert_delivery, alert_delivery_here

__all__ = ["Outcry"]

_TAKES = ("\tserver", "takes writes")
_ANSWERS = ("\tserver", "answers")

REST = dt.timedelta(hours=1)
"""Between what people are told of one refusal and of the next; told late is not left out."""

_log = structlog.get_logger(__name__)


class Outcry:
    """Looks whether the server takes writes. ``deliver`` brings an alert to people, ``deliver_here`` without the server."""

    def __init__(
        self,
        runtime: Runtime,
        deliver: Callable[[Signal], None] | None = None,
        deliver_here: Callable[[Signal], None] | None = None,
    ) -> None:
        self._runtime = runtime
        self._deliver = deliver or alert_delivery(runtime)
        self._deliver_here = deliver_here or alert_delivery_here(runtime)
        self._troubled = False
        self._told: tuple[str, dt.datetime] | None = None
        """Since when the server had refused that people were last told of, and when that was."""

    def look_patiently(self) -> None:
        """`look`; trouble is said once, and raises nothing."""
        try:
            self._troubled = not self.look()
            self._note_answer()
        except (PersistenceError, MeshError) as trouble:
            if not self._troubled:
                _log.warning("cannot look whether the server takes writes", trouble=str(trouble))
            self._troubled = True
            if isinstance(trouble, UnreachableError):
                self._cry_of_silence(str(trouble))

    def look(self) -> bool:
        """Whether the server takes writes; if not, people have been told. Raises `UnreachableError` without a server."""
        store, now = self._runtime.deliveries, self._runtime.clock.now()
        held = store.get(*_TAKES)
        try:
            _put(store, _TAKES, held, now)
        except UnreachableError:
            raise
        except PersistenceError as refusal:
            if not self._troubled:
                _log.error("the server takes no writes", trouble=str(refusal))
            self._cry(str(refusal), _moment(held), now)
            return False
        return True

    def _is_soon_after_another(self, when: str, now: dt.datetime) -> bool:
        """Whether people were told of another refusal within the hour: a server at the edge refuses every other minute."""
        if self._told is not None and self._told[0] != when and now - self._told[1] < REST:
            return True
        if self._told is None or self._told[0] != when:
            self._told = (when, now)
        return False

    def _note_answer(self) -> None:
        here = self._runtime.deliveries_here
        try:
            _put(here, _ANSWERS, here.get(*_ANSWERS), self._runtime.clock.now())
        except PersistenceError as trouble:
            _log.warning("this machine cannot record that the server answers", trouble=str(trouble))

    def _cry_of_silence(self, trouble: str) -> None:
        """Tell of a server that has not answered for as long as an agent may be silent."""
        here, now = self._runtime.deliveries_here, self._runtime.clock.now()
        try:
            since = _moment(here.get(*_ANSWERS))
            if since is None:
                _put(here, _ANSWERS, None, now)  # it never answered here: it is away from now on
        except PersistenceError as damage:
            _log.warning("this machine cannot tell when the server last answered", trouble=str(damage))
            return
        if since is not None and is_stale(since, now, self._runtime.settings.watchdog.stale_after_seconds):
            when = since.isoformat()
            away = Signal(f"{AWAY_TOPIC}/{when}", AWAY_TOPIC, {"since": when, "trouble": trouble})
            _tell(self._deliver_here, away)

    def _cry(self, refusal: str, since: dt.datetime | None, now: dt.datetime) -> None:
        when = "never" if since is None else since.isoformat()
        if not self._is_soon_after_another(when, now):
            _tell(self._deliver, Signal(f"{REFUSING_TOPIC}/{when}", REFUSING_TOPIC, {"since": when, "trouble": refusal}))
        watchdog, alerts = self._runtime.settings.watchdog, self._runtime.settings.alerts
        for agent in watchdog.agents if matches_any(alerts.topics, STALE_TOPIC) else ():
            seen = self._runtime.heartbeats.last_seen(agent)
            if is_stale(seen, since or now, watchdog.stale_after_seconds):
                told = {"last_seen": None if seen is None else seen.isoformat(), "checked_at": now.isoformat()}
                _tell(self._deliver, Signal(alert_key(agent, seen), STALE_TOPIC, {"agent": agent, **told}))


def _tell(deliver: Callable[[Signal], None], alert: Signal) -> None:
    try:
        deliver(alert)
    except (DeliveryFailedError, PersistenceError) as trouble:
        _log.warning("an alert did not go out; the next look tries again", signal=alert.id, trouble=str(trouble))


def _put(store: Persistence, place: tuple[str, str], held: bytes | None, now: dt.datetime) -> None:
    """Move a moment on, unless somebody else does."""
    moment = now.isoformat().encode()
    if held is None:
        store.initialize_if_absent(*place, moment)
    else:
        store.write_if_unchanged(*place, held, {place[1]: moment})


def _moment(held: bytes | None) -> dt.datetime | None:
    return None if held is None else dt.datetime.fromisoformat(held.decode())
