"""`jarvis signals tail`: the latest facts on the bus, and those that come."""

import datetime as dt
import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from console.output import flush, say, show, show_json
from console.wording import moment, parse_since

if TYPE_CHECKING:
    from bus import Signal, SignalBus
    from console.joining import Joined

__all__ = ["Choice", "choose", "latest", "signal_line", "tail"]

LINES = 20
"""Facts that are shown when nobody says since when."""
PAGE = 1000
LOOK_EVERY = 0.3
"""Seconds between looks at the bus while following."""


def tail(
    topic: Annotated[
        list[str] | None, typer.Option(help="Only topics that match: * is one word, # any number. May be repeated.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="All facts since then: an age such as 30m or 2h, or 2026-11-30T07:00. Else the last 20.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with those that come, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Show the facts on the bus, the latest last. Heartbeats are left out unless their topic is asked for."""
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    zone = settings.mesh.operator.tzinfo
    begin = None if since is None else parse_since(since, dt.datetime.now(dt.UTC), zone)
    choice = choose(topic or (), begin)

    def put(signals: Iterable["Signal"]) -> None:
        for signal in signals:
            if as_json:
                show_json(_as_json(signal), indent=None)
            else:
                show(signal_line(signal, zone))
        flush()

    if follow:
        visit(settings, _Following(choice, put).look)
    else:
        put(visit(settings, lambda mesh: latest(mesh.client.runtime.signals, choice))[0])


@dataclass(frozen=True, slots=True)
class Choice:
    """Which facts are wanted."""

    topics: tuple[str, ...]
    beats: bool
    since: dt.datetime | None

    def wants(self, signal: "Signal") -> bool:
        """Whether a fact that matches the topics is wanted."""
        from bus.streams import HEARTBEAT_TOPIC

        recent = self.since is None or _published(signal) >= self.since
        return recent and (self.beats or signal.topic != HEARTBEAT_TOPIC)


def choose(topics: Iterable[str], since: dt.datetime | None) -> Choice:
    """The choice that was typed; without topics, every fact that is no heartbeat. Raises `MisuseError`."""
    from bus import BusError
    from bus.topics import check_patterns
    from console.errors import MisuseError

    named = tuple(topics)
    try:
        return Choice(check_patterns(named or ("#",)), bool(named), since)
    except BusError as wrong:
        raise MisuseError(str(wrong)) from wrong


def latest(bus: "SignalBus", choice: Choice) -> tuple[list["Signal"], str]:
    """The wanted facts since the given moment, or else the last ones, oldest first; and the position behind them."""
    found: deque[Signal] = deque(maxlen=LINES if choice.since is None else None)
    position: str | None = None
    while page := bus.read(choice.topics, position, PAGE):
        position = page.position
        found.extend(signal for signal in page if choice.wants(signal))
    return list(found), page.position


def signal_line(signal: "Signal", zone: ZoneInfo) -> str:
    """One fact for people: when, what, which, and its content."""
    content = json.dumps(dict(signal.payload), ensure_ascii=False)
    return f"{moment(_published(signal), zone)}  {signal.topic}  {signal.id}  {content}"


class _Following:
    """Follows the bus, and goes on where it was when the server's owner changed meanwhile."""

    def __init__(self, choice: Choice, put: Callable[[Iterable["Signal"]], None]) -> None:
        self._choice = choice
        self._put = put
        self._position: str | None = None

    def look(self, mesh: "Joined") -> None:
        """Put out what there is, then what comes. Ends by itself only where nothing can come."""
        bus = mesh.client.runtime.signals
        if self._position is None:
            found, self._position = latest(bus, self._choice)
            self._put(found)
        if mesh.supervisor is not None:
            say("no mesh runs here, so nothing more will come: `jarvis up` runs one")
            return
        while True:
            page = bus.read(self._choice.topics, self._position, PAGE)
            self._position = page.position
            self._put(signal for signal in page if self._choice.wants(signal))
            if not page:
                time.sleep(LOOK_EVERY)


def _published(signal: "Signal") -> dt.datetime:
    if signal.published_at is None:
        raise ValueError(f"signal {signal.id!r} has never been on a bus")
    return signal.published_at


def _as_json(signal: "Signal") -> dict[str, Any]:
    return {
        "id": signal.id,
        "topic": signal.topic,
        "published_at": _published(signal).isoformat(),
        "payload": dict(signal.payload),
        "entry_id": signal.entry_id,
    }
