"""A picture in the language of Mermaid (R)."""

from typing import ClassVar

from workflow import MermaidExporter, Node, ParallelEvent, StartEvent, StopEvent, WorkflowState
from workflow.exporting import Progress


class Charge(Node):
    step_name = "charge"

    def __call__(self, event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()


def test_c271_boxes_and_edges_stand_there_once_each(define):
    assert define(Charge()).export() == "\n".join(
        [
            "graph TD",
            '    StartEvent["StartEvent"]',
            '    Charge[["Charge"]]',
            '    StopEvent["StopEvent"]',
            "    StartEvent --> Charge",
            "    Charge --> StopEvent",
        ]
    )


def test_c271_no_line_is_there_twice_whatever_the_graph(forking):
    lines = forking.export().splitlines()
    assert len(lines) == len(set(lines))


def test_c273_edges_of_branches_bear_their_names(forking):
    lines = [line.strip() for line in forking.export(MermaidExporter()).splitlines()]
    assert 'Work -->|"pages"| Page' in lines
    assert 'Read -->|"pages"| Gather' in lines


def test_names_of_branches_cannot_break_the_picture(define):
    class Split(ParallelEvent):
        declared_branches: ClassVar = {'a "|b` <i>#1;\n\x00é': StartEvent}

    def join(event: Split, state: WorkflowState) -> StopEvent:
        return StopEvent()

    drawn = define(Charge(), join).export()
    assert '    Split -->|"a #34;#124;b#96; #60;i#62;#35;1; é"| StartEvent' in drawn.splitlines()


def test_the_progress_of_a_run_colours_its_nodes(forking):
    progress = Progress(done={"Split", "Read"}, current={"Count"}, failed={"Check"})
    plain, coloured = (forking.export(MermaidExporter(known)).splitlines() for known in (None, progress))

    assert coloured[: len(plain)] == plain
    added = [line.strip() for line in coloured[len(plain) :]]
    assert [line for line in added if line.startswith("class ")] == [
        "class Split,Read done",
        "class Count current",
        "class Check failed",
    ]
    assert [line.split()[1] for line in added if line.startswith("classDef ")] == ["done", "current", "failed"]


def test_a_run_that_has_not_begun_has_no_colours(define):
    assert define(Charge()).export(MermaidExporter(Progress())) == define(Charge()).export()
