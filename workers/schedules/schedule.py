"""`Schedule`: a rule in a zone, the workflow that each slot starts, and what is done with slots that were missed."""

import datetime as dt
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from workers.schedules.rules import Every, Rule, Slot

__all__ = ["AT_MOST", "NAME", "AfterDowntime", "Schedule", "schedule_of"]

AT_MOST = 10
"""Missed slots that one look makes up for at most, where all are wanted."""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""What a schedule may be called. The capitals of a slot's key keep names and slots apart in a workflow id."""
_OCCURRENCE = re.compile(rf"({NAME.pattern})-\d{{8}}T\d{{6}}Z")


class AfterDowntime(enum.Enum):
    """What becomes of slots that passed while nobody looked."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a workflow is started. All moments are aware; slots carry UTC and their local time."""

    name: str
    workflow: str
    rule: Rule
    zone: ZoneInfo
    after_downtime: AfterDowntime = AfterDowntime.LATEST
    at_most: int = AT_MOST

    @property
    def key(self) -> str:
        """Rule and zone as text: a schedule with another one begins anew."""
        return self.rule.text if isinstance(self.rule, Every) else f"{self.rule.text} {self.zone.key}"

    def next(self, after: dt.datetime) -> Slot | None:
        """The first slot after a moment; None when the rule never happens."""
        return self.rule.next(after, self.zone)

    def previous(self, at: dt.datetime) -> Slot | None:
        """The last slot at or before a moment."""
        return self.rule.previous(at, self.zone)

    def between(self, after: dt.datetime, until: dt.datetime) -> Iterator[Slot]:
        """The slots after one moment up to and with another, in their order."""
        slot = self.next(after)
        while slot is not None and slot.at <= until:
            yield slot
            slot = self.next(slot.at)

    def backwards(self, until: dt.datetime, after: dt.datetime) -> Iterator[Slot]:
        """The same slots, the last one first."""
        slot = self.previous(until)
        while slot is not None and slot.at > after:
            yield slot
            slot = self.previous(slot.at - dt.timedelta(microseconds=1))

    def occurrence(self, slot: Slot) -> str:
        """The workflow id of a slot."""
        return f"{self.name}-{slot.key}"


def schedule_of(workflow_id: str) -> str | None:
    """The name of the schedule that a workflow id of this form belongs to, or None."""
    found = _OCCURRENCE.fullmatch(workflow_id)
    return None if found is None else found[1]
