"""The schedules of one mesh: the watchdog's, the briefing's, and those of ``[[schedules]]``; and how an occurrence begins."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from mesh.briefing import briefing_id
from workers import registry
from workers.definitions import BRIEFING, WATCHDOG
from workers.errors import SettingsError
from workers.schedules.rules import Every, Slot, WallTimes
from workers.schedules.schedule import AfterDowntime, Schedule
from workers.schedules.tables import BRIEFING_SCHEDULE, WATCHDOG_SCHEDULE, OwnSchedule
from workflow import Event
from workflow.registry import defined_type

if TYPE_CHECKING:
    from workers.client import MeshClient
    from workers.settings import Settings

__all__ = ["Occurrence", "Scheduled", "briefing_schedule", "scheduled"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One slot that is started now. ``tag`` is the run's."""

    slot: Slot
    workflow_id: str
    tag: str
    now: dt.datetime


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule and how its occurrences are named and begun. To begin one that has begun changes nothing."""

    schedule: Schedule
    workflow_id: Callable[[Slot], str]
    begin: Callable[["MeshClient", Occurrence], None]


def scheduled(settings: "Settings") -> list[Scheduled]:
    """What these settings ask for. Raises `SettingsError` for a workflow or an event that this process does not know."""
    operator = settings.mesh.operator.tzinfo
    own = [_own(table, table.schedule(operator)) for table in settings.schedules]
    return [_briefing(settings), _watchdog(settings), *own]


def briefing_schedule(settings: "Settings") -> Schedule:
    """When the briefing is due."""
    table = settings.schedule
    rule, zone = WallTimes.daily(table.briefing), settings.mesh.operator.tzinfo
    return Schedule(BRIEFING_SCHEDULE, BRIEFING, rule, zone, table.after_downtime, table.at_most)


def _briefing(settings: "Settings") -> Scheduled:
    def begin(client: "MeshClient", occurrence: Occurrence) -> None:
        due = occurrence.slot.at.astimezone(settings.mesh.operator.tzinfo)
        client.enqueue_edition(occurrence.slot.local.date(), 1, due=due, tag=occurrence.tag)

    return Scheduled(briefing_schedule(settings), lambda slot: briefing_id(slot.local.date()), begin)


def _watchdog(settings: "Settings") -> Scheduled:
    def begin(client: "MeshClient", occurrence: Occurrence) -> None:
        from workers.schedules.watchdog import begin_sweep

        begin_sweep(client.runtime, occurrence.workflow_id, occurrence.now, tag=occurrence.tag)

    # A sweep says how things stand now: one that was missed tells nothing that the next one does not.
    schedule = Schedule(
        WATCHDOG_SCHEDULE, WATCHDOG, Every(settings.schedule.watchdog_every), settings.mesh.operator.tzinfo, AfterDowntime.SKIP
    )
    return Scheduled(schedule, schedule.occurrence, begin)


def _own(table: OwnSchedule, schedule: Schedule) -> Scheduled:
    from workers.client.editions import reserved_run_id

    if table.workflow not in registry.names():
        known = ", ".join(registry.names())
        raise SettingsError(
            f"schedule {table.name!r} starts {table.workflow!r}, which nobody registers:"
            f" use one of {known}, or name its module in JARVIS_MODULES"
        )
    event = _event(table)

    def begin(client: "MeshClient", occurrence: Occurrence) -> None:
        run_id = reserved_run_id(occurrence.workflow_id)
        client.start(table.workflow, occurrence.workflow_id, event, run_id=run_id, tag=occurrence.tag)

    return Scheduled(schedule, schedule.occurrence, begin)


def _event(table: OwnSchedule) -> Event | None:
    if table.event is None:
        return None
    kind = defined_type(table.event)
    if kind is None or not issubclass(kind, Event):
        raise SettingsError(
            f"schedule {table.name!r}: no module in JARVIS_MODULES defines an event {table.event!r}: write it as module.Class"
        )
    try:
        return kind.model_validate(dict(table.payload))
    except ValidationError as wrong:
        first = wrong.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"schedule {table.name!r}: payload {place}: {first['msg']}") from wrong
