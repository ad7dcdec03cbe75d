"""Names of a briefing's runs: editions numbered after the highest ever started, and the run id that an edition reserves."""

import datetime as dt
import re

from mesh.briefing import DailyBriefingWorkflow, briefing_id
from persistence import Persistence
from workflow.store import IGNITIONS_LOG

__all__ = ["latest_edition", "next_edition", "reserved_run_id"]

_LOG = f"{IGNITIONS_LOG}{DailyBriefingWorkflow.name}"
PAGE = 1000
RUN_ID_LIMIT = 128


def latest_edition(store: Persistence, date: dt.date) -> int:
    """The highest edition that was ever started for a date; 0 when there was none. Read off the log, which outlives runs."""
    form = re.compile(re.escape(briefing_id(date)) + r"(?:\.([1-9]\d*))?")
    highest, after = 0, None
    while page := store.read_log(_LOG, after, PAGE):
        after = page[-1].position
        found = (form.fullmatch(entry.data.decode()) for entry in page)
        highest = max([highest, *(int(match[1] or 1) for match in found if match)])
    return highest


def next_edition(store: Persistence, date: dt.date) -> int:
    """The edition to start next."""
    return latest_edition(store, date) + 1


def reserved_run_id(workflow_id: str) -> str:
    """The one run id of an occurrence, so that whoever starts it again finds it."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", workflow_id)[-RUN_ID_LIMIT:].lstrip("-_") or "run"
