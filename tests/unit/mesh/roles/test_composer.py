"""How the two texts become one briefing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from mesh.roles.assignment import Assignment
from mesh.roles.composer import BriefingRole
from mesh.settings import MeshConfig

Config = Callable[..., MeshConfig]
Clock = Callable[[], dt.datetime]
MONDAY = dt.date(2026, 11, 30)


def composed(config: MeshConfig, clock: Clock, research: str | None, operations: str | None) -> str:
    assignment = Assignment(role="briefing", date=MONDAY, research=research, operations=operations)
    return BriefingRole(config, clock).perform(assignment)


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


def test_what_needs_attention_comes_first_and_what_is_down_before_what_is_due(config: Config, clock: Clock) -> None:
    text = composed(
        config(),
        clock,
        "## Notes\n- note\n\n## Needs attention\n- due\n\n## What is new\n- a\n- and 10 more from X\n",
        "## Could not be read\n- **Work**: gone\n\n## Today's calendar\n- b\n- c\n\n## Needs attention\n- down\n",
    )

    assert headings(text) == [
        "# Monday 30 November 2026",
        "## Needs attention",
        "## Today's calendar",
        "## What is new",
        "## Notes",
        "## Could not be read",
    ]
    assert "## Needs attention\n\n- down\n- due\n" in text
    assert "2 things need attention; 2 appointments; 11 new items; 1 source could not be read." in text


def test_a_calm_day_reads_well(config: Config, clock: Clock) -> None:
    feeds = [{"name": "Paper", "path": "p.xml"}]
    text = composed(
        config(feeds=feeds),
        clock,
        "## What is new\n\nNothing new since Sun 29 Nov 07:00.\n",
        "## Today's calendar\n\nNothing in the calendar on Mon 30 Nov.\n",
    )

    assert text == (
        "# Monday 30 November 2026\n\n"
        "A calm start: nothing needs attention; no appointments; no new items.\n\n"
        "## Needs attention\n\nNothing needs your attention.\n\n"
        "## Today's calendar\n\nNothing in the calendar on Mon 30 Nov.\n\n"
        "## What is new\n\nNothing new since Sun 29 Nov 07:00.\n\n"
        "---\n\n"
        "*Written for Ada on Mon 30 Nov 07:00, from 1 feed. "
        "New means since Sun 29 Nov 07:00. All times are Europe/Vienna.*\n"
    )


def test_a_text_that_is_missing_or_blank_is_a_gap(config: Config, clock: Clock) -> None:
    text = composed(config(), clock, None, " \n")

    assert "Nothing needs attention; 2 sources could not be read." in text
    assert "- **operations**: the agent delivered no text\n- **research**: the agent delivered no text" in text


def test_sections_and_words_that_nobody_expected_are_kept_at_the_end(config: Config, clock: Clock) -> None:
    text = composed(config(), clock, "Dear Ada,\n\n## Weather\nrain\n", "## Services\n- up\n")

    assert headings(text)[1:] == ["## Needs attention", "## Services", "## From research", "## Weather"]
    assert "## From research\n\nDear Ada," in text
