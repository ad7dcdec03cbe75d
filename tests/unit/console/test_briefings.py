"""Briefings by name and as files."""

import datetime as dt

import pytest

from console.asking import edition_of
from console.pages import page_path, write_page
from mesh.briefing import briefing_id
from workers.errors import FolderUnusableError

DAY = dt.date(2026, 11, 30)


@pytest.mark.parametrize("edition", [1, 2, 10])
def test_the_edition_can_be_read_off_the_workflow_id(edition):
    assert edition_of(briefing_id(DAY, edition), DAY) == edition


def test_later_editions_have_files_of_their_own(tmp_path):
    assert page_path(tmp_path, DAY, 1) == tmp_path / "briefings" / "2026-11-30.md"
    assert page_path(tmp_path, DAY, 2) == tmp_path / "briefings" / "2026-11-30.2.md"


def test_a_page_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path):
    path = page_path(tmp_path, DAY, 1)
    write_page(path, "first, and longer")
    write_page(path, "second: Grüße\n")

    assert path.read_text(encoding="utf-8") == "second: Grüße\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_page_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "briefings").write_text("in the way")
    with pytest.raises(FolderUnusableError, match="briefings"):
        write_page(page_path(tmp_path, DAY, 1), "text")
