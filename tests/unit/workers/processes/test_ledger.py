"""The records of started processes."""

import pytest

from workers.errors import FolderUnusableError
from workers.processes.launch import write_record
from workers.processes.ledger import Entry, Ledger, asked

ENTRY = Entry(mark="feed", role="worker", pid=12, started="Mon Nov 30 22:38:12 2026", foundation=True, grace=2.5)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.open()
    return ledger


def record(ledger, entry=ENTRY):
    first = asked(entry.mark, entry.role, foundation=entry.foundation, grace=entry.grace)
    write_record(str(ledger.path(entry.mark)), f"{first}\n{entry.pid} {entry.started}\n")


def test_what_is_recorded_is_read_back(ledger):
    record(ledger)
    assert ledger.entries() == [ENTRY]
    assert ledger.find("feed") == ENTRY


def test_what_is_forgotten_is_gone_and_may_be_forgotten_again(ledger):
    record(ledger)
    ledger.forget(ENTRY)
    ledger.forget(ENTRY)
    assert ledger.entries() == []
    assert ledger.find("feed") is None


def test_a_ledger_that_was_never_opened_is_empty(tmp_path):
    assert Ledger(tmp_path / "none").entries() == []


def test_opening_removes_what_was_half_written(ledger):
    part = ledger.folder / "feed.json.part"
    part.write_text("{")
    ledger.open()
    assert list(ledger.folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{}", "{}\nx y\n", '{"mark": "feed"}\n12 then\n', '["a"]\n12 then\n', "{\n12 then\n"])
def test_a_file_that_is_no_record_is_an_error_that_names_it(ledger, content):
    path = ledger.path("feed")
    path.write_text(content)
    with pytest.raises(FolderUnusableError, match=r"feed\.json is not a record of a process: remove it and try again"):
        ledger.entries()
