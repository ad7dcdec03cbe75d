"""`jarvis schedules`: what is started by the clock, how the last time went, and when the next one is."""

import datetime as dt
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.output import show, show_json
from console.wording import age

if TYPE_CHECKING:
    from workers.schedules.overview import LastOccurrence, ScheduleView

__all__ = ["schedules", "table_of"]


def schedules(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False) -> None:
    """Show each schedule: its rule, how its last run went, and when the next one is."""
    from console.joining import visit
    from workers.settings import Settings

    found = visit(Settings.load(), lambda mesh: mesh.client.schedules())
    if as_json:
        show_json([_as_json(view) for view in found])
    else:
        for line in table_of(found, dt.datetime.now(dt.UTC)):
            show(line)


def table_of(views: Iterable["ScheduleView"], now: dt.datetime) -> list[str]:
    """The schedules as aligned lines, each time by the clock of its zone."""
    cells = [(view.name, view.rule, _next(view, now), _last(view.last)) for view in views]
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in range(3)]
    return ["  ".join([*(text.ljust(width) for text, width in zip(cell, widths, strict=False)), cell[3]]) for cell in cells]


def _next(view: "ScheduleView", now: dt.datetime) -> str:
    if view.next is None:
        return "never again"
    return f"next {view.next:%A %Y-%m-%d} {_time(view.next)} ({view.zone}), in {age((view.next - now).total_seconds())}"


def _last(last: "LastOccurrence | None") -> str:
    if last is None:
        return "has not run yet"
    return f"last {last.slot:%Y-%m-%d} {_time(last.slot)} {last.outcome}{', late' if last.late else ''}"


def _time(at: dt.datetime) -> str:
    """The time of day; with the offset where the clocks show it twice."""
    shown = at.time().isoformat("seconds" if at.second else "minutes")
    twice = at.replace(fold=0).utcoffset() != at.replace(fold=1).utcoffset()
    return f"{shown} {at:%z}" if twice else shown


def _as_json(view: "ScheduleView") -> dict[str, Any]:
    return {
        "name": view.name,
        "workflow": view.workflow,
        "rule": view.rule,
        "zone": view.zone,
        "after_downtime": view.after_downtime,
        "last": None if view.last is None else _last_as_json(view.last),
        "next": None if view.next is None else view.next.isoformat(),
    }


def _last_as_json(last: "LastOccurrence") -> dict[str, Any]:
    return {"slot": last.slot.isoformat(), "workflow_id": last.workflow_id, "outcome": last.outcome, "late": last.late}
