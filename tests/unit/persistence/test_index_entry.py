"""What an index entry refuses, and what it matches."""

import math

import pytest

from persistence import IndexEntry


@pytest.mark.parametrize("field", ["name", "status", "tag"])
def test_what_can_be_searched_for_holds_no_nul(field):
    with pytest.raises(ValueError, match="NUL"):
        IndexEntry("p", **{field: "a\x00b"})


def test_a_partition_and_a_summary_may_hold_nul():
    assert IndexEntry("a\x00b", summary="a\x00b").summary == "a\x00b"


@pytest.mark.parametrize("due", [math.nan, math.inf, -math.inf, 10**400])
def test_a_due_time_is_a_moment(due):
    with pytest.raises(ValueError, match="use None"):
        IndexEntry("p", due)


def test_an_absent_tag_is_not_an_empty_one():
    assert not IndexEntry("p").matches(None, None, "")
    assert IndexEntry("p", tag="").matches(None, None, "")


def test_nothing_asked_matches_everything():
    assert IndexEntry("p").matches(None, None, None)
    assert IndexEntry("p", 1.0, "name", "status", "tag").matches(None, None, None)
