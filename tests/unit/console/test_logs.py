"""The logs of the mesh's processes on one screen."""

import json
from zoneinfo import ZoneInfo

from console.following import LogFollower
from console.log_lines import json_line, readable_line

VIENNA = ZoneInfo("Europe/Vienna")


def test_a_record_is_shown_with_time_role_words_and_the_rest():
    line = json.dumps({"run_id": "r1", "event": "settled", "level": "info", "timestamp": "2026-11-30T06:00:00Z", "attempt": 2})
    assert readable_line("worker", line, VIENNA) == "07:00:00  worker     settled  run_id=r1  attempt=2"


def test_a_level_is_named_where_it_matters_and_a_traceback_is_kept():
    line = json.dumps({"event": "run failed", "level": "error", "timestamp": "x", "exception": "Traceback: …"})
    assert readable_line("worker", line, VIENNA) == "          worker     ERROR: run failed\nTraceback: …"


def test_other_text_is_shown_as_it_is():
    for line in ("plain words", "[1, 2]", '{"no": "event"}', "{broken"):
        assert readable_line("server", line, VIENNA) == f"          server     {line}"


def test_for_machines_each_line_is_an_object_with_its_role():
    assert json.loads(json_line("beat", '{"event": "tick"}')) == {"role": "beat", "event": "tick"}
    assert json.loads(json_line("server", "plain")) == {"role": "server", "event": "plain"}


def test_only_whole_lines_that_are_new_are_followed(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("of an earlier run\n")
    follower = LogFollower()
    follower.add("worker", log)
    follower.add("beat", tmp_path / "beat.log")

    with log.open("a") as file:
        file.write("one\n\ntwo\nthr")
    assert list(follower.new_lines()) == [("worker", "one"), ("worker", "two")]

    with log.open("a") as file:
        file.write("ee\n")
    (tmp_path / "beat.log").write_text("first\n")
    assert list(follower.new_lines()) == [("worker", "three"), ("beat", "first")]
    assert list(follower.new_lines()) == []


def test_a_log_that_was_set_aside_is_followed_from_its_new_beginning(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("a long line of an earlier run\n")
    follower = LogFollower()
    follower.add("worker", log)
    log.rename(tmp_path / "worker.log.1")
    log.write_text("new\n")

    assert list(follower.new_lines()) == [("worker", "new")]
