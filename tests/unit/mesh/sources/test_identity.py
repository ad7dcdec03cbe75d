"""Which entries are the same entry (A4): ids that are missing, shared or that change their scheme."""

from __future__ import annotations

import datetime as dt

import pytest

from mesh.sources.identity import Traits, canonical, identify

MONDAY = dt.date(2026, 11, 30)


def entry(title: str, *, id: str = "", link: str = "", day: dt.date | None = MONDAY) -> Traits:  # noqa: A002
    return Traits(id, link, title, day)


def test_without_ids_the_link_identifies() -> None:
    assert identify([entry("a", link="https://x.example/1"), entry("b", link="https://x.example/2")]) == [
        "link:x.example/1",
        "link:x.example/2",
    ]


def test_one_id_on_five_titles_leaves_five_entries() -> None:
    keys = identify([entry(f"title {number}", id="always-the-same", link="https://x.example/") for number in range(5)])

    assert len(set(keys)) == 5


def test_an_id_that_flips_its_scheme_stays_the_same() -> None:
    [before] = identify([entry("a", id="http://x.example/1?utm_source=rss")])
    [after] = identify([entry("a", id="https://X.example/1/")])

    assert before == after


def test_an_exact_repeat_does_not_make_its_id_look_shared() -> None:
    once = entry("a", id="one")

    assert identify([once, once, entry("b", id="two")]) == ["id:one", "id:one", "id:two"]


def test_title_and_day_are_the_last_resort() -> None:
    assert identify([entry("a"), entry("a", day=None)]) == ["title:2026-11-30:a", "title:undated:a"]


@pytest.mark.parametrize("address", ["urn:uuid:1", "http://[broken", "tag:x.example,2026:1", ""])
def test_what_is_no_address_is_left_as_it_is(address: str) -> None:
    assert canonical(address) == address
