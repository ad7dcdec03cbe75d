"""Whether the work of a mesh gets on, by its queues, sweeper, schedules, groups, history and alerts: pure rules."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from bus import GroupInfo
from console.health.findings import Finding, State
from console.wording import age, moment

__all__ = [
    "SILENT_SINCE",
    "QueueFacts",
    "ScheduleFacts",
    "judge_deliveries",
    "judge_due",
    "judge_group",
    "judge_groups",
    "judge_history",
    "judge_queues",
    "judge_schedules",
    "judge_silent",
]

BACKLOG = 1000
"""Messages on a queue from which on it is worth a word."""
LATE = 60.0
"""Seconds for which something may wait that is usually seen to within a few."""
MISSED = 120.0
"""Seconds after a slot by which its schedule has been looked at: that happens every few seconds."""
SILENT_SINCE = 3600.0
"""Seconds within which a worker must have been heard for its silence to be worth a word."""
IDLE = 24 * 3600.0
"""Seconds without a look after which nobody is thought to read for a group any more."""
SHOWN_IDS = 3

_START = "start `jarvis up`"
_STANDING = {
    "heartbeats": "beats are not recorded, so nobody can say who has stopped",
    "alerts": "alerts do not go out",
    "subscriptions": "runs that wait for signals are late",
}
"""The groups that every mesh has, and what it means when nobody reads for them."""


@dataclass(frozen=True, slots=True)
class ScheduleFacts:
    """A schedule, and the first slot that was not begun; ``skips`` says whether it may leave slots out after downtime."""

    name: str
    due: dt.datetime | None
    skips: bool


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue: how many messages wait, and how many malformed ones were set aside. ``oldest`` is how many seconds the first one
    has waited, where the broker shows it.
    """

    name: str
    waiting: int
    oldest: float | None = None
    set_aside: int = 0


def judge_silent(here: Sequence[str], elsewhere: Sequence[str]) -> Iterator[Finding]:
    """Workers that beat a while ago and do not now: a worker beats only while it takes messages.

    Those of this machine still live; of the others nobody here can say.
    """
    if here:
        meaning = "they take no messages: each starts its consumer anew, or ends; if it does neither, restart it"
        yield Finding("silent workers", State.WRONG, f"alive and silent: {_some(here)}", meaning)
    if elsewhere:
        meaning = "they have ended, or take no messages: look there"
        yield Finding("silent workers", State.NOTE, f"fell silent within the last hour: {_some(elsewhere)}", meaning)


def judge_queues(queues: Sequence[QueueFacts]) -> Iterator[Finding]:
    """Whether messages are taken from each queue."""
    for queue in queues:
        check, oldest = f"queue {queue.name}", queue.oldest or 0
        fact = f"{queue.waiting} waiting" + (f", the oldest for {age(oldest)}" if queue.waiting and oldest >= 1 else "")
        if queue.waiting > BACKLOG or (queue.waiting and oldest > LATE):
            yield Finding(check, State.NOTE, fact, "the workers do not keep up, or there is none: start more of them")
        else:
            yield Finding(check, State.OK, fact)
        if queue.set_aside:
            fact = f"{queue.set_aside} malformed messages were set aside"
            yield Finding(check, State.NOTE, fact, f"somebody else writes there: look at {queue.name}.malformed")


def judge_due(overdue: float | None) -> Finding:
    """For how long the oldest due run has been waiting to be seen to (seconds); None when none is due."""
    if overdue is None or overdue <= LATE:
        return Finding("sweeper", State.OK, "nothing is overdue")
    meaning = f"nobody sweeps, or a run is damaged (its log says so): timers, retries and lost hints wait: {_START}"
    return Finding("sweeper", State.WRONG, f"a run is overdue by {age(overdue)}", meaning)


def judge_schedules(schedules: Sequence[ScheduleFacts], now: dt.datetime, zone: ZoneInfo) -> Iterator[Finding]:
    """Whether somebody looks at the schedules."""
    silent = [one for one in schedules if one.due is not None and (now - one.due).total_seconds() > MISSED]
    for one in silent:
        fact = f"{one.name}: the slot of {moment(one.due or now, zone)} was not begun"
        if one.skips:
            yield Finding("schedules", State.NOTE, fact, "nobody looks at the schedules, or it passed while nothing ran")
        else:
            yield Finding("schedules", State.WRONG, fact, f"nobody looks at the schedules: {_START}")
    if not silent:
        yield Finding("schedules", State.OK, f"{len(schedules)} looked at: `jarvis schedules`")


def judge_groups(groups: Sequence[GroupInfo], now: dt.datetime) -> Iterator[Finding]:
    """Whether the signals of each group are handled."""
    known = {info.name for info in groups}
    for name, meaning in _STANDING.items():
        if name not in known:
            yield Finding(f"group {name}", State.NOTE, "nobody has ever read for it", f"{meaning}: {_START}")
    for info in groups:
        yield from judge_group(info, now)


def judge_group(info: GroupInfo, now: dt.datetime) -> Iterator[Finding]:
    """Whether the signals of one group are handled, and whether it gave some up."""
    check = f"group {info.name}"
    waited = 0.0 if info.oldest_unread is None else (now - info.oldest_unread).total_seconds()
    fact = f"{info.unread} unread, the oldest for {age(waited)}" if info.unread else "has read everything"
    if info.name in _STANDING and waited > LATE:
        yield Finding(check, State.WRONG, fact, f"{_STANDING[info.name]}: {_START}")
    elif waited > LATE and (info.abandoned or (info.idle or 0) > IDLE):
        yield Finding(check, State.NOTE, f"{fact}; nobody reads for it", "the bus cannot forget them: start its consumer")
    elif waited > IDLE:
        yield Finding(check, State.NOTE, fact, "its consumer does not keep up")
    else:
        yield Finding(check, State.OK, fact)
    if info.dead:
        state = State.WRONG if info.name in _STANDING else State.NOTE
        meaning = f"given up: `jarvis signals dead list {info.name}`, then replay or discard them"
        yield Finding(check, state, f"{info.dead} dead letters", meaning)


def judge_history(behind: float | None) -> Finding:
    """For how long the oldest line of history has been waiting to be passed on (seconds); None when none waits."""
    if behind is None or behind <= LATE:
        return Finding("history", State.OK, "passed on")
    meaning = f"failed and stalled runs alert nobody until the sweeper passes it on: {_START}"
    return Finding("history", State.WRONG, f"not passed on for {age(behind)}", meaning)


def judge_deliveries(unknown: Sequence[str]) -> Iterator[Finding]:
    """Alerts of which nobody knows whether they arrived."""
    if unknown:
        fact = f"nobody knows whether {len(unknown)} arrived: {_some(unknown)}"
        yield Finding("alerts", State.NOTE, fact, "their sender ended while it sent: look where they should be")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_IDS} more" if len(names) > SHOWN_IDS else ""
    return f"{', '.join(names[:SHOWN_IDS])}{more}"
