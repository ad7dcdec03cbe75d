"""The records of started processes."""

import shutil

import pytest

from workers.errors import FolderUnusableError
from workers.processes.identity import file_id
from workers.processes.launch import write_record
from workers.processes.ledger import Entry, Ledger


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.open()
    return ledger


def record(ledger):
    first = ledger.first_line("feed", "worker", foundation=True, grace=2.5)
    write_record(str(ledger.path("feed")), f"{first}\n12 Mon Nov 30 22:38:12 2026\n")
    return Entry(file_id(ledger.folder), "feed", "worker", 12, "Mon Nov 30 22:38:12 2026", True, 2.5)


def test_what_is_recorded_is_read_back(ledger):
    entry = record(ledger)
    assert ledger.entries() == [entry]
    assert ledger.find("feed") == entry


def test_what_is_forgotten_is_gone_and_may_be_forgotten_again(ledger):
    entry = record(ledger)
    ledger.forget(entry)
    ledger.forget(entry)
    assert ledger.entries() == []
    assert ledger.find("feed") is None


def test_a_ledger_that_was_never_opened_is_empty(tmp_path):
    assert Ledger(tmp_path / "none").entries() == []


def test_a_record_counts_only_in_the_folder_it_was_written_to(ledger, tmp_path):
    entry = record(ledger)
    shutil.copytree(ledger.folder, tmp_path / "copy" / "processes")
    copy = Ledger(tmp_path / "copy")
    assert copy.entries() == []
    copy.open()
    assert list(copy.folder.iterdir()) == []
    (tmp_path / "moved").mkdir()
    ledger.folder.rename(tmp_path / "moved" / "processes")
    assert Ledger(tmp_path / "moved").entries() == [entry]


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
