"""The look at the schedules: start what is due and has not been started. Beat's ticks and the sweeper both ask for it.

Looks may happen at the same time, in any number of processes, and end anywhere. One run for each slot comes of it: its workflow
id and its run id follow from schedule and slot, a run that holds the id is found and not replaced, and it is kept for longer
than a look can take. The cursor keeps looks cheap, and says after a time without looks which slots have passed.
"""

import datetime as dt
from collections.abc import Callable, Sequence

import structlog

from persistence import UnreachableError
from workers.client import MeshClient
from workers.schedules.catalogue import Occurrence, Scheduled
from workers.schedules.catching_up import first_moment, is_late, slots_to_start
from workers.schedules.cursor import Cursor, CursorStore
from workers.schedules.rules import Slot

__all__ = ["FUTURE_LIMIT", "ScheduleLook", "tag_of", "utc_now"]

FUTURE_LIMIT = 3600
"""Seconds that a cursor may be ahead of this process's clock before the clock that wrote it is taken to have been wrong."""

_log = structlog.get_logger(__name__)


def utc_now() -> dt.datetime:
    """The present moment."""
    return dt.datetime.now(dt.UTC)


def tag_of(name: str, *, late: bool) -> str:
    """The tag of a schedule's runs."""
    return f"schedule:{name}:late" if late else f"schedule:{name}"


class ScheduleLook:
    """Looks at the schedules of a mesh. ``now`` gives aware moments. May be used by several threads."""

    def __init__(self, client: MeshClient, schedules: Sequence[Scheduled], *, now: Callable[[], dt.datetime] = utc_now) -> None:
        self._client = client
        self._schedules = schedules
        self._now = now
        self._idle_until: dict[str, dt.datetime] = {}
        """By schedule the next slot: before it the store need not be asked."""
        self._troubled = False
        self._damaged: set[str] = set()

    def look_patiently(self) -> None:
        """Look once. A store that does not answer is said once and waited out."""
        try:
            self.look()
            self._troubled = False
        except UnreachableError as trouble:
            if not self._troubled:
                _log.warning("cannot look at the schedules until the store answers", trouble=str(trouble))
            self._troubled = True

    def look(self) -> int:
        """Look once. Returns how many slots were begun. Raises `persistence.UnreachableError` without a server."""
        return sum(self._see_to_safely(scheduled) for scheduled in self._schedules)

    def _see_to_safely(self, scheduled: Scheduled) -> int:
        """One schedule that cannot be followed must not keep us from the others. It is named once."""
        name = scheduled.schedule.name
        now = self._now()
        if now < self._idle_until.get(name, now):
            return 0
        try:
            begun = self._see_to(scheduled, now)
        except UnreachableError:
            raise
        except Exception as trouble:  # noqa: BLE001 - a user's factory may raise anything
            if name not in self._damaged:
                _log.error("a schedule is passed over", schedule=name, trouble=str(trouble))
            self._damaged.add(name)
            return 0
        self._damaged.discard(name)
        return begun

    def _see_to(self, scheduled: Scheduled, now: dt.datetime) -> int:
        schedule = scheduled.schedule
        cursors = CursorStore(self._client.runtime.store, schedule)
        cursor = self._settled(scheduled, cursors, cursors.read_or_begin(first_moment(schedule, now)), now)
        begun = 0
        for slot in slots_to_start(schedule, cursor.at, now):
            claim = cursor.claim(slot.at, scheduled.workflow_id(slot), now, late=is_late(slot, now))
            if not cursors.move(claim):
                return begun  # somebody else looks at this very moment: the next look finds out what came of it
            self._begin(scheduled, slot, claim, now)
            begun += 1
            cursor = claim.confirmed()
            if not cursors.move(cursor):
                return begun
        following = schedule.next(now)
        if following is not None:
            self._idle_until[schedule.name] = following.at
        return begun

    def _begin(self, scheduled: Scheduled, slot: Slot, claim: Cursor, now: dt.datetime) -> None:
        schedule, workflow_id = scheduled.schedule, scheduled.workflow_id(slot)
        if claim.late:
            _log.warning("a slot was missed and is made up for", schedule=schedule.name, slot=slot.key, workflow_id=workflow_id)
        tag = tag_of(schedule.name, late=claim.late)
        scheduled.begin(self._client, Occurrence(slot, workflow_id, tag, now))

    def _settled(self, scheduled: Scheduled, cursors: CursorStore, cursor: Cursor, now: dt.datetime) -> Cursor:
        """The cursor without a claim that somebody left, and not where only a wrong clock can have put it."""
        if cursor.at - now > dt.timedelta(seconds=FUTURE_LIMIT) + (first_moment(scheduled.schedule, now) - now):
            _log.warning(
                "a clock was ahead: the schedule counts from now", schedule=scheduled.schedule.name, was=str(cursor.at)
            )
            return self._moved(cursors, cursor, Cursor(now))
        if cursor.claimed_at is None or cursor.workflow_id is None:
            return cursor
        if self._was_begun(scheduled, cursor.workflow_id, cursor.claimed_at, now):
            return self._moved(cursors, cursor, cursor.confirmed())
        # Not written: the claim stands until the slot, or a later one, is claimed anew.
        return cursor.withdrawn()

    def _moved(self, cursors: CursorStore, cursor: Cursor, moved: Cursor) -> Cursor:
        return moved if cursors.move(moved) else (cursors.read() or cursor)

    def _was_begun(self, scheduled: Scheduled, workflow_id: str, claimed_at: dt.datetime, now: dt.datetime) -> bool:
        """Whether the run of a claimed slot was recorded. Where nobody can know any more, it counts as begun."""
        if self._client.runtime.store.entry(workflow_id) is not None:
            return True
        kept = self._client.runtime.definition(scheduled.schedule.workflow, workflow_id).retain_for
        if kept is None or (now - claimed_at).total_seconds() < kept:
            return False
        _log.warning("whether a slot was run cannot be known any more; it is not run again", workflow_id=workflow_id)
        return True
