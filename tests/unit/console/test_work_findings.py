"""How `jarvis doctor` judges whether the work of a mesh gets on."""

import datetime as dt
import os
import socket
import subprocess
import sys
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bus import GroupInfo
from console.health.findings import Finding, ServerFacts, State, judge_server
from console.health.progress import silent_workers
from console.health.work import (
    QueueFacts,
    ScheduleFacts,
    judge_deliveries,
    judge_due,
    judge_group,
    judge_groups,
    judge_history,
    judge_queues,
    judge_schedules,
    judge_silent,
)

NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)
UTC = ZoneInfo("UTC")
DAY = 24 * 3600.0


def ago(seconds: float) -> dt.datetime:
    return NOW - dt.timedelta(seconds=seconds)


def group(name: str = "alerts", **counts: Any) -> GroupInfo:
    return GroupInfo(name, **{"unread": 0, "pending": 0, "retrying": 0, "dead": 0, "consumers": 1, "idle": 1.0, **counts})


def states(findings: Any) -> list[State]:
    found: list[Finding] = list(findings)
    assert all(finding.meaning for finding in found if finding.state is not State.OK)
    return [finding.state for finding in found]


def test_a_queue_is_fine_until_nobody_can_have_kept_up():
    assert states(judge_queues([QueueFacts("segments", 1000, 60), QueueFacts("sweeps", 0)])) == [State.OK, State.OK]
    assert states(judge_queues([QueueFacts("segments", 1001)])) == [State.NOTE]
    [finding] = judge_queues([QueueFacts("segments", 1, 3700)])
    assert (finding.state, finding.fact) == (State.NOTE, "1 waiting, the oldest for 1 h")


def test_messages_that_were_set_aside_are_counted_and_their_place_is_named():
    _, set_aside = judge_queues([QueueFacts("segments", 0, set_aside=2)])
    assert set_aside.state is State.NOTE
    assert "segments.malformed" in set_aside.meaning


@pytest.mark.parametrize(("overdue", "state"), [(None, State.OK), (59.0, State.OK), (61.0, State.WRONG)])
def test_runs_that_are_overdue_mean_that_nobody_sweeps(overdue, state):
    assert states([judge_due(overdue)]) == [state]


@pytest.mark.parametrize(("behind", "state"), [(None, State.OK), (59.0, State.OK), (61.0, State.WRONG)])
def test_history_that_stays_where_it_is_alerts_nobody(behind, state):
    assert states([judge_history(behind)]) == [state]


@pytest.mark.parametrize(
    ("due", "skips", "state"),
    [
        (None, False, State.OK),
        (ago(-3600), False, State.OK),
        (ago(119), False, State.OK),
        (ago(121), False, State.WRONG),
        (ago(121), True, State.NOTE),
    ],
)
def test_a_slot_that_nobody_began_means_that_nobody_looks(due, skips, state):
    assert states(judge_schedules([ScheduleFacts("report", due, skips)], NOW, UTC)) == [state]


def test_the_slot_that_was_missed_is_named_by_the_operators_clock():
    (found,) = judge_schedules([ScheduleFacts("report", ago(3600), skips=False)], NOW, ZoneInfo("Asia/Tokyo"))
    assert found.fact == "report: the slot of 2026-11-30 14:00:00 was not begun"


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (group(), [State.OK]),
        (group(unread=3, oldest_unread=ago(10)), [State.OK]),
        (group(unread=3, oldest_unread=ago(61)), [State.WRONG]),
        (group(dead=1), [State.OK, State.WRONG]),
        (group("ours", unread=3, oldest_unread=ago(61)), [State.OK]),
        (group("ours", unread=3, oldest_unread=ago(DAY + 1)), [State.NOTE]),
        (group("ours", unread=3, oldest_unread=ago(61), consumers=0, idle=None), [State.NOTE]),
        (group("ours", unread=3, oldest_unread=ago(61), idle=DAY + 1), [State.NOTE]),
        (group("ours", dead=1), [State.OK, State.NOTE]),
    ],
)
def test_a_group_that_falls_behind_is_said_and_those_of_the_mesh_are_wrong(info, expected):
    assert states(judge_group(info, NOW)) == expected


def test_a_group_of_the_mesh_that_has_never_been_read_for_is_said():
    found = list(judge_groups([group("heartbeats"), group("ours")], NOW))
    assert [(one.check, one.state) for one in found] == [
        ("group alerts", State.NOTE),
        ("group subscriptions", State.NOTE),
        ("group heartbeats", State.OK),
        ("group ours", State.OK),
    ]


def test_alerts_that_may_not_have_arrived_are_named():
    assert list(judge_deliveries([])) == []
    (found,) = judge_deliveries(["a", "b", "c", "d"])
    assert found.state is State.NOTE
    assert found.fact == "nobody knows whether 4 arrived: a, b, c and 1 more"


def test_a_server_that_has_evicted_is_wrong_whatever_its_policy_is_now():
    found = judge_server(ServerFacts("host:1", {"redis_version": "7.0.15", "evicted_keys": 3}, missing=()))
    (evicted,) = (finding for finding in found if finding.check == "evicted")
    assert (evicted.state, evicted.fact) == (State.WRONG, "3 keys since the server was started")


def test_a_worker_that_lives_and_does_not_beat_is_told_from_one_that_has_ended():
    here = f"worker:{socket.gethostname()}"
    program = [sys.executable, "-c", "print(flush=True); input()", "celery"]
    celery = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert celery.stdout is not None
        celery.stdout.readline()  # for a moment after its start a process has no command line yet
        seen = {
            f"{here}:{celery.pid}": ago(100),
            f"{here}:{os.getppid()}": ago(30),
            f"{here}:0x": ago(100),
            f"{here}:99999999": ago(100),
            "worker:elsewhere:7": ago(100),
            "worker:long-gone:8": ago(DAY),
            "research": ago(100),
        }
        alive, elsewhere = silent_workers(seen, NOW)
    finally:
        celery.communicate()

    assert (alive, elsewhere) == ([f"{here}:{celery.pid}"], ["worker:elsewhere:7"])
    assert states(judge_silent(alive, elsewhere)) == [State.WRONG, State.NOTE]
    assert states(judge_silent([], [])) == []
