"""`jarvis brief` as a person meets it: the first one, the second one, a new edition, a failing agent, two at the same time."""

import datetime as dt
import json
import signal
from typing import Any

import psutil
import pytest
import redis

from mesh.heartbeats import RedisHeartbeatStore
from workers.processes import owner_of

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

ROLES = ["research", "operations", "briefing"]
DAY = ("--date", "2026-11-30")
TEXT = "# briefing of 2026-11-30\n"


def test_the_first_brief_writes_what_the_example_has_to_say_and_leaves_no_process(place: Any) -> None:
    code, data, words = place.run("brief", *DAY, scripted=False)

    assert code == 0, words
    assert data.startswith("# Monday 30 November 2026\n")
    assert "Written for Mara Lindqvist" in data
    assert "- **mesh**" not in data
    assert data == (place.home / "briefings" / "2026-11-30.md").read_text()
    assert [line for line in words.splitlines() if line.endswith(": done")] == [
        "jarvis: Research: done",
        "jarvis: Operations: done",
        "jarvis: Composition: done",
        "jarvis: Publication: done",
    ]
    assert words.splitlines()[-1] == "jarvis: wrote .jarvis/briefings/2026-11-30.md"
    assert place.left() == []


def test_the_second_brief_returns_the_first_one_without_an_agent_or_a_worker(place: Any) -> None:
    first = place.run("brief", *DAY, "--json")
    worker_log = place.log("worker")
    second = place.run("brief", *DAY, "--json")

    assert first[0] == second[0] == 0
    assert json.loads(first[1]) == {
        "date": "2026-11-30",
        "edition": 1,
        "path": str(place.home / "briefings" / "2026-11-30.md"),
        "created": True,
        "text": TEXT,
    }
    assert json.loads(second[1]) == {**json.loads(first[1]), "created": False}
    assert "was there already" in second[2]
    assert place.asked() == ROLES
    assert place.log("worker") == worker_log
    assert place.left() == []


def test_the_file_of_a_kept_briefing_is_written_again_when_it_is_gone(place: Any) -> None:
    place.run("brief", *DAY)
    page = place.home / "briefings" / "2026-11-30.md"
    page.unlink()

    assert place.run("brief", *DAY)[0] == 0
    assert page.read_text() == TEXT
    assert place.asked() == ROLES


def test_again_writes_a_further_edition_beside_the_first(place: Any) -> None:
    place.run("brief", *DAY)
    code, data, _ = place.run("brief", *DAY, "--again", "--json")

    assert code == 0
    assert (json.loads(data)["edition"], json.loads(data)["created"]) == (2, True)
    assert (place.home / "briefings" / "2026-11-30.2.md").read_text() == TEXT
    assert place.asked() == ROLES * 2


def test_a_failing_agent_is_one_line_and_the_next_brief_goes_on_where_it_stopped(place: Any) -> None:
    place.fail_once("operations")
    code, data, words = place.run("brief", *DAY)

    assert (code, data) == (1, "")
    assert words.splitlines()[-1] == (
        "jarvis: the briefing of 2026-11-30 was not finished (RuntimeError: operations is ill): "
        "`jarvis brief --date 2026-11-30` takes it up where it stopped"
    )
    assert place.left() == []

    code, data, words = place.run("brief", *DAY)
    assert (code, data) == (0, TEXT)
    assert place.asked() == ["research", "operations", "operations", "briefing"]


def test_briefs_at_the_same_time_are_one_run(place: Any) -> None:
    commands = [place.start("brief", *DAY) for _ in range(3)]
    ends = [command.ended() for command in commands]

    assert [(code, data) for code, data, _ in ends] == [(0, TEXT)] * 3, ends
    assert place.asked() == ROLES
    assert place.left() == []


def test_a_guest_takes_over_when_the_owner_of_its_server_is_killed(place: Any) -> None:
    place.hold("operations")
    owner = place.start("brief", *DAY)
    place.until(lambda: "operations" in place.asked(), "operations is asked")
    guest = place.start("brief", *DAY)
    place.until(lambda: psutil.Process(guest.popen.pid).net_connections("unix"), "the guest speaks to the owner's server")
    owner.send(signal.SIGKILL)
    place.until(lambda: owner_of(place.home) == guest.popen.pid, "the guest owns the home folder")
    place.release("operations")

    assert guest.ended()[:2] == (0, TEXT)
    assert place.asked().count("research") == 1
    assert place.left() == []


def test_on_a_terminal_the_steps_are_ticked_off_and_the_briefing_is_rendered(place: Any) -> None:
    code, shown = place.run_on_terminal("brief", *DAY)

    assert code == 0
    assert "✓" in shown
    assert "Publication" in shown
    assert "briefing of 2026-11-30" in shown
    assert "# briefing" not in shown


def test_a_server_without_workers_gets_one_for_the_length_of_the_call(place: Any, redis_url: str) -> None:
    code, data, words = place.run("brief", *DAY, JARVIS_REDIS_URL=redis_url)

    assert (code, data) == (0, TEXT), words
    assert "no worker was heard" in words
    assert not (place.home / "server").exists()
    assert place.left() == []


def test_the_briefing_tells_of_agents_that_beat_on_this_server_once_and_of_no_others(
    place: Any, redis_url: str, redis_client: redis.Redis
) -> None:
    RedisHeartbeatStore(redis_client).beat("research", dt.datetime(2026, 11, 29, 18, tzinfo=dt.UTC))

    code, data, words = place.run("brief", *DAY, scripted=False, JARVIS_REDIS_URL=redis_url)

    assert code == 0, words
    [silent] = [line for line in data.splitlines() if "been heard" in line]
    assert "Agent research has not been heard since 19:00 on 2026-11-29" in silent


def test_a_server_that_is_not_there_is_one_line(place: Any) -> None:
    code, data, words = place.run("brief", *DAY, JARVIS_REDIS_URL="unix:///nowhere/s")

    assert (code, data) == (1, "")
    assert words.count("\n") == 1
    assert words.startswith("jarvis: no answer from the Redis server at /nowhere/s")
