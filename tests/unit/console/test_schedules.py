"""`jarvis schedules` from what was typed to what is shown; on a server of its own."""

import json

import pytest


@pytest.fixture
def served(redis_url, monkeypatch, empty_folder):
    monkeypatch.setenv("JARVIS_REDIS_URL", redis_url)
    (empty_folder / "jarvis.toml").write_text('[operator]\nzone = "Asia/Tokyo"\n')


def test_the_schedules_of_a_new_mesh_have_a_next_run_in_its_zone(jarvis, served):
    code, data, said = jarvis("schedules")

    assert (code, said) == (0, "")
    briefing, watchdog = data.splitlines()
    assert briefing.startswith("daily-briefing  every day at 07:00  next ")
    assert " 07:00 (Asia/Tokyo), in " in briefing
    assert watchdog.startswith("watchdog        every minute        next ")
    assert watchdog.endswith("has not run yet")


def test_as_json_they_are_a_list(jarvis, served):
    code, data, _ = jarvis("schedules", "--json")

    briefing, watchdog = json.loads(data)
    assert code == 0
    assert briefing["next"].endswith("T07:00:00+09:00")
    del briefing["next"], watchdog["next"]
    assert briefing == {
        "name": "daily-briefing",
        "workflow": "daily-briefing",
        "rule": "every day at 07:00",
        "zone": "Asia/Tokyo",
        "after_downtime": "latest",
        "last": None,
    }
    assert watchdog["after_downtime"] == "skip"


def test_a_schedule_of_an_unknown_workflow_is_one_line_and_exit_code_2(jarvis, served, empty_folder):
    (empty_folder / "jarvis.toml").write_text('[[schedules]]\nname = "stock"\nworkflow = "shpo"\nat = "07:00"\n')
    code, data, said = jarvis("schedules")

    assert (code, data, said.count("\n")) == (2, "", 1)
    assert said.startswith("jarvis: schedule 'stock' starts 'shpo', which nobody registers: use one of ")
