"""How far a briefing is, as it is shown."""

import io
import sys

import pytest

from console.progress import STEPS, Track, progress
from mesh.briefing import DailyBriefingWorkflow


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_steps_are_those_of_the_workflow_in_their_order():
    nodes = DailyBriefingWorkflow.from_id("jarvis-briefing-2026-11-30").nodes()
    assert list(STEPS) == [node.step_name for node in nodes]


def test_a_step_is_done_when_the_run_is_at_the_next():
    track = Track()
    assert track.advance("") == []
    assert track.advance("operations") == ["Research"]
    assert track.advance("operations") == []
    assert track.finish() == ["Operations", "Composition", "Publication"]


def test_a_worker_that_takes_over_does_not_turn_the_list_back():
    track = Track()
    track.advance("compose")
    assert track.advance("") == []
    assert track.reached == 2


def test_nobody_has_begun_until_a_worker_says_so():
    track = Track()
    assert track.reached == -1
    track.advance("")
    assert track.reached == 0


def test_where_nobody_looks_each_step_is_a_line(capsys):
    with progress() as shown:
        shown.at("")
        shown.at("compose")
        shown.done()

    assert capsys.readouterr().err.splitlines() == [f"jarvis: {title}: done" for title in STEPS.values()]


def test_on_a_terminal_the_steps_are_a_list_that_ends_ticked_off(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as shown:
        shown.done()

    # The last picture begins at the last mention of the first step.
    last = terminal.getvalue().rpartition("Research")[2]
    assert last.count("✓") == len(STEPS) - 1
