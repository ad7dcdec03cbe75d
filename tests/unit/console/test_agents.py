"""Who beats and who does not, as `jarvis agents` lists it."""

import datetime as dt
from zoneinfo import ZoneInfo

from console.commands.agents import rows_of, table_of
from console.commands.watchdog import found_lines
from console.working import heard_lately

NOW = dt.datetime(2026, 11, 30, 6, 0, tzinfo=dt.UTC)


def ago(seconds):
    return NOW - dt.timedelta(seconds=seconds)


def test_expected_agents_come_first_in_the_order_of_the_settings():
    seen = {"operations": ago(10), "archivist": ago(5), "research": ago(400)}
    rows = rows_of(seen, ("research", "operations", "briefing"), NOW, 300)

    assert [(row.agent, row.state, row.expected) for row in rows] == [
        ("research", "stale", True),
        ("operations", "up", True),
        ("briefing", "missing", True),
        ("archivist", "up", False),
    ]


def test_a_worker_that_fell_silent_is_left_out_unless_it_is_expected():
    seen = {"worker:a:1": ago(400), "worker:a:2": ago(1), "worker:b:1": ago(400)}
    assert [row.agent for row in rows_of(seen, ("worker:b:1",), NOW, 300)] == ["worker:b:1", "worker:a:2"]


def test_the_table_is_aligned_and_on_the_operators_clock():
    rows = rows_of({"research": ago(90)}, ("research", "operations"), NOW, 300)
    assert table_of(rows, ZoneInfo("Europe/Vienna")) == [
        "research    up       2026-11-30 06:58:30  1 m ago",
        "operations  missing  never heard",
    ]


def test_a_table_without_agents_is_empty():
    assert table_of([], ZoneInfo("UTC")) == []


def test_only_workers_that_beat_lately_count_as_heard():
    seen = {"worker:a:1": ago(61), "worker:a:2": ago(60), "research": ago(1)}
    assert heard_lately(seen, NOW) == ["worker:a:2"]


def test_a_sweep_names_the_stopped_agents_first():
    assert found_lines({"stale": ["b"], "healthy": ["a"]}) == ["stopped  b", "healthy  a"]
