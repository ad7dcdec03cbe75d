"""How a user's own schedule is written in jarvis.toml: a ``[[schedules]]`` table."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mesh.settings import ZoneName
from workers.schedules.rules import Every, Rule, WallTimes
from workers.schedules.schedule import AT_MOST, NAME, AfterDowntime, Schedule

__all__ = ["BRIEFING_SCHEDULE", "WATCHDOG_SCHEDULE", "AtMost", "OwnSchedule", "OwnSchedules", "TimeOfDay"]

WATCHDOG_SCHEDULE = "watchdog"
BRIEFING_SCHEDULE = "daily-briefing"
_SOME_DAY = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)


def _time_of_day(value: Any) -> Any:
    # A number would be taken for seconds after midnight.
    if isinstance(value, int | float):
        raise ValueError('must be a time of day, such as "07:00"')
    return value


def _on_the_wall(value: dt.time) -> dt.time:
    if value.tzinfo is not None or value.microsecond:
        raise ValueError('must be a time of day without a zone, such as "07:00"; the zone has a key of its own')
    return value


def _own_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("must be small letters, digits, '-' and '_', beginning with a letter or digit, 64 at most")
    if name in (WATCHDOG_SCHEDULE, BRIEFING_SCHEDULE):
        raise ValueError(f"{name!r} is one of the mesh's own schedules; choose another name, or set it in [schedule]")
    return name


def _happens(expression: str) -> str:
    if WallTimes.cron(expression).next(_SOME_DAY, ZoneInfo("UTC")) is None:
        raise ValueError(f"{expression!r} never happens; correct its day or month")
    return expression


TimeOfDay = Annotated[dt.time, BeforeValidator(_time_of_day), AfterValidator(_on_the_wall)]
AtMost = Annotated[int, Field(ge=1, le=1000)]


class OwnSchedule(BaseModel):
    """``[[schedules]]``: when a registered workflow is started, and with which event. ``every`` is in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(_own_name)]
    workflow: Annotated[str, Field(min_length=1)]
    at: TimeOfDay | None = None
    every: Annotated[int, Field(ge=5)] | None = None
    cron: Annotated[str, AfterValidator(_happens)] | None = None
    zone: ZoneName | None = None
    """The operator's unless given."""
    after_downtime: AfterDowntime = AfterDowntime.LATEST
    at_most: AtMost = AT_MOST
    event: str | None = None
    """The start event's class, as ``module.Class``; without it the workflow's own start event."""
    payload: Mapping[str, Any] = {}

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if sum(given is not None for given in (self.at, self.every, self.cron)) != 1:
            raise ValueError(f"schedule {self.name!r}: give one of at, every and cron")
        if self.payload and self.event is None:
            raise ValueError(f"schedule {self.name!r}: a payload needs event, the class that it makes, such as orders.Ordered")
        return self

    def schedule(self, operator: ZoneInfo) -> Schedule:
        """The schedule that is meant, for an operator's zone."""
        zone = operator if self.zone is None else ZoneInfo(self.zone)
        return Schedule(self.name, self.workflow, self._rule(), zone, self.after_downtime, self.at_most)

    def _rule(self) -> Rule:
        if self.at is not None:
            return WallTimes.daily(self.at)
        return Every(self.every) if self.every is not None else WallTimes.cron(self.cron or "")


def _told_apart(schedules: tuple[OwnSchedule, ...]) -> tuple[OwnSchedule, ...]:
    names = [schedule.name for schedule in schedules]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two schedules are called {name!r}; give each a name of its own")
    return schedules


OwnSchedules = Annotated[tuple[OwnSchedule, ...], AfterValidator(_told_apart)]
