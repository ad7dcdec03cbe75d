"""The log files of child processes."""

import pytest

from workers.processes import logs


def test_a_log_is_private_and_appended_to(tmp_path):
    path = tmp_path / "logs" / "worker.log"
    for line in (b"one\n", b"two\n"):
        with logs.open_log(path) as log:
            log.write(line)
    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_log_that_grew_too_large_is_set_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "LARGEST_BYTES", 5)
    path = tmp_path / "worker.log"
    path.write_text("too long")
    logs.open_log(path).close()
    assert path.read_text() == ""
    assert (tmp_path / "worker.log.1").read_text() == "too long"


@pytest.mark.parametrize(("since", "lines"), [(0, ["one", "two"]), (4, ["two"]), (9, []), (99, ["one", "two"])])
def test_the_tail_is_what_was_written_since(tmp_path, since, lines):
    path = tmp_path / "worker.log"
    path.write_text("one\n\ntwo\n")
    assert logs.tail(path, since) == lines


def test_a_log_that_is_not_there_has_no_tail(tmp_path):
    assert logs.tail(tmp_path / "none.log") == []
