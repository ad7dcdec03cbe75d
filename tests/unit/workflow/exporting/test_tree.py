"""A picture as a tree of text (R)."""

from workflow import ConsoleExporter, StopEvent, WorkflowState
from workflow.exporting import Progress

FORKING = """\
Asked → Split
└─ Work
   ├─ pages: Page → Read
   │  ├─ Page → Read (see above)
   │  └─ pages ends at Gather
   ├─ figures: Figures → Count
   │  └─ Sides
   │     ├─ left: Left → left
   │     │  └─ left ends at Weigh
   │     ├─ right: Right → right
   │     │  └─ right ends at Weigh
   │     └─ joined: Weigh
   │        └─ Checked → Check
   │           └─ figures ends at Gather
   └─ joined: Gather
      ├─ Asked → Split (see above)
      └─ StopEvent

Lost → Unreached
└─ StopEvent"""


def test_c276_the_tree_begins_at_the_start_event_and_shows_everything_once(forking):
    assert forking.export(ConsoleExporter()) == FORKING


def test_the_progress_of_a_run_marks_its_nodes(forking):
    progress = Progress(done={"Split", "Read"}, current={"Count"}, failed={"Check"})
    drawn = forking.export(ConsoleExporter(progress)).splitlines()

    assert drawn[0] == "Asked → ✓ Split"
    assert "   ├─ figures: Figures → ▶ Count" in drawn
    assert "   │        └─ Checked → ✗ Check" in drawn
    assert "   └─ joined: Gather" in drawn


def test_an_event_that_has_been_shown_is_not_shown_again(define):
    def only(event: StopEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    assert define(only, start_event=StopEvent()).export(ConsoleExporter()) == (
        "StopEvent → only\n└─ StopEvent → only (see above)"
    )
