"""Editions of a briefing: numbered after the highest that was ever started, so that no number is used twice."""

import datetime as dt
import re

from mesh.briefing import DailyBriefingWorkflow, briefing_id
from persistence import Persistence
from workflow.store import IGNITIONS_LOG

__all__ = ["latest_edition", "next_edition"]

_LOG = f"{IGNITIONS_LOG}{DailyBriefingWorkflow.name}"
PAGE = 1000


def latest_edition(store: Persistence, date: dt.date, operator: str | None = None) -> int:
    """The highest edition that was ever started for a date; 0 when there was none. Read off the log, which outlives runs."""
    form = re.compile(re.escape(briefing_id(date, operator=operator)) + r"(?:\.([1-9]\d*))?")
    highest, after = 0, None
    while page := store.read_log(_LOG, after, PAGE):
        after = page[-1].position
        found = (form.fullmatch(entry.data.decode()) for entry in page)
        highest = max([highest, *(int(match[1] or 1) for match in found if match)])
    return highest


def next_edition(store: Persistence, date: dt.date, operator: str | None = None) -> int:
    """The edition to start next."""
    return latest_edition(store, date, operator) + 1
