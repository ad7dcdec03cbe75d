"""Asking the mesh for a briefing, and waiting for it: whatever happens to workers and server meanwhile, it is one run.

Asked twice for the same edition, the mesh answers with the same run. So a call whose mesh ended under it asks the next
one again, for the edition that it was given the first time.
"""

import datetime as dt
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.errors import BriefingFailedError
from console.joining import Joined
from console.output import say
from console.progress import progress
from console.wording import moment
from console.working import hands
from mesh.briefing import briefing_id
from persistence import UnreachableError
from workflow import WorkflowStatus

if TYPE_CHECKING:
    from console.progress import Progress
    from workers.client import RunHandle, RunResult
    from workflow import Failure

__all__ = ["Briefing", "Wish", "edition_of"]

LONGEST = 24 * 3600.0
"""Seconds that a call waits: as long as anybody may want to."""
PATIENCE = 60.0
"""Seconds without an answer of the store after which a call gives up; the briefing goes on."""
STILL = 30.0
"""Seconds without a change after which a call says so."""
LOOK_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Briefing:
    """A finished briefing. ``created`` if this call began it, ``kept`` if it was finished before."""

    date: dt.date
    edition: int
    text: str
    created: bool
    kept: bool


class Wish:
    """One call's wish for the briefing of a date (today, by the operator's clock, when None), or for a further edition."""

    def __init__(self, date: dt.date | None, *, again: bool) -> None:
        self._date = date
        self._edition = None if again else 1
        self._created = False

    def grant(self, mesh: Joined) -> Briefing:
        """The briefing: the one that is kept, or one that the mesh now writes. Raises `BriefingFailedError`."""
        # Settled at once: the call must not wish for another day because midnight passes while it waits.
        self._date = date = self._date or mesh.client.today()
        kept = None if self._edition is None else _kept(mesh, date, self._edition)
        text = kept if kept is not None else self._written(mesh, date)
        return Briefing(date, self._edition or 1, text, self._created, kept is not None and not self._created)

    def _written(self, mesh: Joined, date: dt.date) -> str:
        with progress() as shown, hands(mesh) as working:
            handle = self._ask(working, date)
            result = follow(handle, working, shown)
            if result.status is not WorkflowStatus.COMPLETED:
                raise BriefingFailedError(_failure(date, self._edition or 1, result))
            shown.done()
        return str(result.result)

    def _ask(self, mesh: Joined, date: dt.date) -> "RunHandle":
        if self._edition is None:
            handle = mesh.client.enqueue_briefing(date, again=True)
            self._edition = edition_of(handle.workflow_id, date)
        else:
            handle = mesh.client.enqueue_edition(date, self._edition)
        self._created = self._created or handle.created
        return handle


def edition_of(workflow_id: str, date: dt.date) -> int:
    """The edition that a workflow id names."""
    return int(workflow_id.removeprefix(briefing_id(date)).removeprefix(".") or 1)


def follow(handle: "RunHandle", mesh: Joined, shown: "Progress") -> "RunResult":
    """Wait until the run is settled, through the times in which the server is away. Raises `UnreachableError` in the end."""
    watch = _Watch(handle, mesh, shown)
    while True:
        try:
            return handle.wait(LONGEST, look=watch.look)
        except UnreachableError:
            if mesh.has_ended() or time.monotonic() - watch.answered > PATIENCE:
                raise
            mesh.tend()
            time.sleep(LOOK_EVERY)


class _Watch:
    """Looks at the run while it is waited for: shows where it is, and says once when it does not move."""

    def __init__(self, handle: "RunHandle", mesh: Joined, shown: "Progress") -> None:
        self._handle = handle
        self._mesh = mesh
        self._shown = shown
        self._seen: object = None
        self._moved = self.answered = time.monotonic()
        self._told = False
        self._retry: dt.datetime | None = None

    def look(self) -> None:
        """Look once. The store has just answered."""
        self.answered = time.monotonic()
        self._mesh.tend()
        snapshot, step = self._handle.snapshot(), self._handle.step()
        if snapshot is None:
            return
        if snapshot.status is WorkflowStatus.RUNNING:
            self._shown.at(step)
        if snapshot.failure is not None and snapshot.failure.retry_at is not None:
            self._say_retry(snapshot.failure, snapshot.failure.retry_at)
        self._note((snapshot.status, snapshot.execution_attempt, step))

    def _say_retry(self, failure: "Failure", at: dt.datetime) -> None:
        if at != self._retry:
            self._retry = at
            say(f"{failure}; it is tried again at {moment(at, self._mesh.settings.mesh.operator.tzinfo)}")

    def _note(self, seen: object) -> None:
        if seen != self._seen:
            self._seen, self._moved = seen, self.answered
        elif self.answered - self._moved > STILL and not self._told:
            self._told = True
            say(f"nothing has moved for {STILL:.0f} s; still waiting. What the worker says: {self._mesh.home / 'logs'}")


def _kept(mesh: Joined, date: dt.date, edition: int) -> str | None:
    """The text of a briefing that was finished before, looked up without any worker."""
    from workers.client import RunHandle
    from workers.definitions import BRIEFING

    workflow_id = briefing_id(date, edition)
    found = mesh.client.inspect(workflow_id)
    if found is None or found.status is not WorkflowStatus.COMPLETED:
        return None
    handle = RunHandle(mesh.client, BRIEFING, workflow_id, found.run_id, created=False)
    return str(handle.wait(0).result)


def _failure(date: dt.date, edition: int, result: "RunResult") -> str:
    how = str(result.failure or (f"it is {result.status.value}" if result.status else "it has been ended from outside"))
    remedy = (
        f"`jarvis brief --date {date}` takes it up where it stopped"
        if edition == 1
        else "`jarvis brief --again` writes another"
    )
    return f"the briefing of {date} was not finished ({how}): {remedy}"
