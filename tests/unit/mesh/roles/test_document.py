"""Sections are taken apart and put together without losing a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.roles.document import ATTENTION, NEWS, ORDER, Section, count_facts, gather, render, split

LINES = st.sampled_from(
    ["- one", "- two", "text", "", "## What is new", "## Weather", "## what is new:", "### deep", "    ## code"]
)
FENCED = st.sampled_from(["```", "~~~", "## Weather", "text"])


@given(st.lists(LINES, max_size=20), st.lists(LINES, max_size=20))
def test_gathering_keeps_every_line_of_every_body(first: list[str], second: list[str]) -> None:
    sections = split("\n".join(first)) + split("\n".join(second))
    gathered = gather(sections)

    def lines(parts: list[Section]) -> list[str]:
        return sorted(line for part in parts for line in part.body.split("\n") if line.strip())

    assert lines(gathered) == lines(sections)
    assert len({part.heading for part in gathered}) == len(gathered)


@given(st.lists(LINES, max_size=20))
def test_known_sections_come_in_their_order_and_unknown_ones_after_them(text: list[str]) -> None:
    headings = [part.heading for part in gather(split("\n".join(text)))]
    known = [heading for heading in headings if heading in ORDER]

    assert headings[: len(known)] == known == [heading for heading in ORDER if heading in known]


@given(st.lists(LINES | FENCED, max_size=20))
def test_what_was_put_together_is_taken_apart_the_same(text: list[str]) -> None:
    sections = split("\n".join(text))

    assert split(render(sections)) == sections


def test_headings_that_mean_the_same_become_one_section() -> None:
    sections = split("## what is new:\n- a\n\n## WHAT IS NEW ##\n- b\n")

    assert gather(sections) == [Section(NEWS, "- a\n- b")]


def test_a_heading_in_a_code_block_is_code() -> None:
    text = "## Weather\n```sh\n## not a heading\n```\n## Needs attention\n- now"

    assert split(text) == [Section("Weather", "```sh\n## not a heading\n```"), Section(ATTENTION, "- now")]


def test_a_code_block_left_open_ends_with_its_text() -> None:
    assert split("## Weather\n~~~~\nrain") == [Section("Weather", "~~~~\nrain\n~~~~")]


def test_a_shorter_or_other_fence_does_not_close_a_block() -> None:
    text = "````\n```\n~~~\n## code\n````"

    assert split(text) == [Section("", text)]


def test_a_text_before_the_first_heading_is_kept() -> None:
    assert split("Good morning!\n\n## Weather\r\nrain\r\n") == [Section("", "Good morning!"), Section("Weather", "rain")]


def test_facts_are_top_level_bullets_and_what_they_stand_for() -> None:
    assert count_facts("Words.\n- a\n  - part of a\n* b\n- and 12 more from the paper") == 14
