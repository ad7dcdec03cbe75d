"""`jarvis agents`: who should beat, who does, and since when not."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from console.output import show, show_json
from console.wording import age, moment

__all__ = ["AgentRow", "agents", "rows_of", "table_of"]


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent. ``state`` is up, stale or missing; ``expected`` ones are in the settings."""

    agent: str
    state: str
    expected: bool
    last_seen: dt.datetime | None
    silent_for: float | None
    """Seconds since it was last seen."""


def agents(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False) -> None:
    """Show when each agent was last heard."""
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    watchdog = settings.watchdog
    seen = visit(settings, lambda mesh: mesh.client.runtime.heartbeats.all())
    rows = rows_of(seen, watchdog.agents, dt.datetime.now(dt.UTC), watchdog.stale_after_seconds)
    if as_json:
        show_json([_as_json(row) for row in rows])
    else:
        for line in table_of(rows, settings.mesh.operator.tzinfo):
            show(line)


def rows_of(
    seen: Mapping[str, dt.datetime], expected: Iterable[str], now: dt.datetime, stale_after_seconds: float
) -> list[AgentRow]:
    """Those that should beat, and whoever else does. A worker that fell silent is left out: another one bears another name."""
    from workers.signals.beats import WORKER_PREFIX

    wanted = tuple(dict.fromkeys(expected))
    others = sorted(agent for agent in seen if agent not in wanted)
    rows = [_row(agent, seen.get(agent), agent in wanted, now, stale_after_seconds) for agent in (*wanted, *others)]
    return [row for row in rows if row.expected or row.state == "up" or not row.agent.startswith(WORKER_PREFIX)]


def table_of(rows: Iterable[AgentRow], zone: ZoneInfo) -> list[str]:
    """The rows as aligned lines, times by the operator's clock."""
    cells = [(row.agent, row.state, _last(row, zone)) for row in rows]
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in (0, 1)]
    return [f"{agent:<{widths[0]}}  {state:<{widths[1]}}  {last}".rstrip() for agent, state, last in cells]


def _row(agent: str, seen: dt.datetime | None, expected: bool, now: dt.datetime, stale_after_seconds: float) -> AgentRow:
    from mesh.watchdog import is_stale

    if seen is None:
        return AgentRow(agent, "missing", expected, None, None)
    state = "stale" if is_stale(seen, now, stale_after_seconds) else "up"
    return AgentRow(agent, state, expected, seen, (now - seen).total_seconds())


def _last(row: AgentRow, zone: ZoneInfo) -> str:
    if row.last_seen is None or row.silent_for is None:
        return "never heard"
    return f"{moment(row.last_seen, zone)}  {age(row.silent_for)} ago"


def _as_json(row: AgentRow) -> dict[str, Any]:
    return {
        "agent": row.agent,
        "state": row.state,
        "expected": row.expected,
        "last_seen": row.last_seen.isoformat() if row.last_seen else None,
        "silent_for": row.silent_for,
    }
