"""`jarvis signals tail|publish|groups`: the facts on the bus, a new one, and how far those are who read them."""

import datetime as dt
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from console.errors import MisuseError
from console.output import flush, say, show, show_json
from console.wording import age, moment, parse_since

if TYPE_CHECKING:
    from bus import GroupInfo, Signal, SignalBus
    from console.joining import Joined

__all__ = ["Choice", "choose", "draft_of", "groups", "groups_table", "latest", "publish", "signal_line", "tail"]

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


def publish(
    id: Annotated[str, typer.Argument(help="The id of the fact. The first publication of an id wins.")],  # noqa: A002
    topic: Annotated[str, typer.Argument(help="Words joined by dots, such as briefing.ready.")],
    payload: Annotated[str, typer.Argument(help="A JSON object, or - to read it from stdin.")] = "{}",
    strict: Annotated[bool, typer.Option("--strict", help="Fail when the id is known with other content.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the fact as a JSON object.")] = False,
) -> None:
    """Put a fact on the bus, once for each id, and show it as it stands there."""
    from console.joining import visit
    from workers.settings import Settings

    offered = draft_of(id, topic, sys.stdin.read() if payload == "-" else payload)
    settings = Settings.load()
    published: Signal = visit(
        settings, lambda mesh: mesh.client.runtime.signals.publish(id, topic, offered.payload, strict=strict)
    )
    if (published.topic, published.payload) != (offered.topic, offered.payload):
        say(f"{id!r} was published before, and the first content stays: publish other content under another id")
    if as_json:
        show_json(_as_json(published))
    else:
        show(signal_line(published, settings.mesh.operator.tzinfo))


def groups(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False) -> None:
    """Show each group of consumers: what waits for it, what it has in hand, what it gave up."""
    from console.joining import visit
    from workers.settings import Settings

    found: list[GroupInfo] = visit(Settings.load(), lambda mesh: mesh.client.runtime.signals.groups())
    if as_json:
        show_json([_group_as_json(info) for info in found])
    else:
        for line in groups_table(found, dt.datetime.now(dt.UTC)):
            show(line)
    for info in found:
        if info.abandoned:
            say(f"signals wait for group {info.name!r}, and no consumer of it is running")


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

    named = tuple(topics)
    try:
        return Choice(check_patterns(named or ("#",)), bool(named), since)
    except BusError as wrong:
        raise MisuseError(str(wrong)) from wrong


def latest(bus: "SignalBus", choice: Choice) -> tuple[list["Signal"], str]:
    """The wanted facts since the given moment, or else the last ones, oldest first; and the position behind them."""
    from bus.places import Position

    found: deque[Signal] = deque(maxlen=LINES if choice.since is None else None)
    position = None if choice.since is None else str(Position.before(choice.since))
    while page := bus.read(choice.topics, position, PAGE):
        position = page.position
        found.extend(signal for signal in page if choice.wants(signal))
    return list(found), page.position


def signal_line(signal: "Signal", zone: ZoneInfo) -> str:
    """One fact for people: when, what, which, and its content."""
    content = json.dumps(dict(signal.payload), ensure_ascii=False)
    return f"{moment(_published(signal), zone)}  {signal.topic}  {signal.id}  {content}"


def draft_of(signal_id: str, topic: str, text: str) -> "Signal":
    """The fact that was typed. Raises `MisuseError` where it is none."""
    from bus import BusError, Signal
    from bus.payload import draft, loads

    try:
        signal = Signal(signal_id, topic, loads(text.encode()))
        draft(signal)
    except BusError as wrong:
        raise MisuseError(str(wrong)) from wrong
    except ValueError as wrong:
        raise MisuseError(f'the payload is not a JSON object ({wrong}): write it as \'{{"agent": "research"}}\'') from wrong
    return signal


def groups_table(found: Iterable["GroupInfo"], now: dt.datetime) -> list[str]:
    """The groups as aligned lines under a heading; ages are those of the oldest signals."""
    rows: list[tuple[str, ...]] = [("group", "unread", "oldest", "in hand", "oldest", "retrying", "dead", "consumers")]
    for info in found:
        waits, held = (
            age((now - oldest).total_seconds()) if oldest else "-" for oldest in (info.oldest_unread, info.oldest_pending)
        )
        numbers = (info.unread, waits, info.pending, held, info.retrying, info.dead, info.consumers)
        rows.append((info.name, *(str(number) for number in numbers)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


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


def _group_as_json(info: "GroupInfo") -> dict[str, Any]:
    return {
        "name": info.name,
        "unread": info.unread,
        "pending": info.pending,
        "retrying": info.retrying,
        "dead": info.dead,
        "oldest_unread": info.oldest_unread and info.oldest_unread.isoformat(),
        "oldest_pending": info.oldest_pending and info.oldest_pending.isoformat(),
        "consumers": info.consumers,
        "idle": info.idle,
        "abandoned": info.abandoned,
    }
