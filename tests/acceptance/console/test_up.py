"""`jarvis up`: a mesh that stands, what others do with it, and how it ends."""

import json
import signal
from typing import Any

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]

DAY = ("--date", "2026-11-30")


@pytest.fixture
def standing(place: Any) -> Any:
    command = place.start("up")
    place.until(lambda: " ready." in command.words, "the worker of `jarvis up` is ready")
    place.until(lambda: "worker:" in place.run("agents", "--json")[1], "its beats are recorded")
    return command


def test_others_use_the_mesh_that_stands_and_sigterm_ends_all_of_it(place: Any, standing: Any) -> None:
    code, data, _ = place.run("brief", *DAY)
    assert (code, data) == (0, "# briefing of 2026-11-30\n")
    assert place.log("worker").count(" ready.") == 1

    assert place.run("watchdog", "sweep")[:2] == (0, "healthy  research\nhealthy  operations\nhealthy  briefing\n")

    signals = [json.loads(line) for line in place.run("signals", "tail", "--json")[1].splitlines()]
    assert [signal["topic"] for signal in signals] == ["research.completed", "operations.completed", "briefing.ready"]

    code, data, words = place.run("doctor", "--json")
    states = {finding["check"]: finding["state"] for finding in json.loads(data)["findings"]}
    assert (code, words) == (0, "")
    assert states == dict.fromkeys(states, "ok")
    assert {"server", "append-only file", "fsync", "memory", "clocks", "broker", "workers", "watchdog"} <= states.keys()

    standing.send(signal.SIGTERM)
    code, data, words = standing.ended()
    assert (code, data) == (0, "")
    assert words.splitlines()[-1] == "jarvis: stopped; what was under way goes on at the next start"
    assert place.left() == []


def test_what_its_processes_log_is_shown_by_role(place: Any, standing: Any) -> None:
    logged = [json.loads(line) for line in standing.words.splitlines() if line.startswith("{")]

    assert {"worker", "beat"} <= {record["role"] for record in logged}
    assert "running: worker, beat, sweeper, consumers" in standing.words
    assert "next briefing: " in standing.words


def test_a_second_up_in_the_same_folder_is_refused(place: Any, standing: Any) -> None:
    code, data, words = place.run("up")

    assert (code, data) == (1, "")
    assert f"is in use by process {standing.popen.pid}" in words
    assert standing.popen.poll() is None


def test_following_ends_with_ctrl_c(place: Any, standing: Any) -> None:
    follower = place.start("signals", "tail", "--follow")
    place.run("brief", *DAY)
    place.until(lambda: "briefing.ready" in follower.out.read_text(), "the fact is shown")
    follower.send(signal.SIGINT)

    assert follower.ended()[0] == 130
