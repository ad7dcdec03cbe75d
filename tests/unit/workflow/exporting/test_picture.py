"""Which boxes a picture has, and which leads to which (R)."""

from collections.abc import AsyncGenerator, Generator
from typing import ClassVar

import pytest

from workflow import (
    Event,
    GraphError,
    MermaidExporter,
    Node,
    ParallelEvent,
    StartEvent,
    StopEvent,
    WorkflowResources,
    WorkflowState,
)


class Next(Event):
    pass


class Other(Event):
    pass


def begin(event: StartEvent, state: WorkflowState) -> Next | StopEvent | None:
    return StopEvent()


class Begin(Node):
    def __call__(self, event: StartEvent, state: WorkflowState) -> Next:
        return Next()


def again(event: Next, state: WorkflowState) -> StartEvent | Next | StopEvent:
    return StopEvent()


def arrows(workflow) -> list[tuple[str, ...]]:
    """The edges by the labels of their boxes; the third one is that of the edge, where it has one."""
    picture = workflow.picture()
    label = {box.id: box.label for box in picture.boxes.values()}
    edges = [(label[edge.source], label[edge.target], edge.label) for edge in picture.edges]
    assert len(edges) == len(set(edges))
    return [edge if edge[2] else edge[:2] for edge in edges]


def test_c272_unions_are_expanded_none_is_left_out_and_a_cycle_is_drawn_once(define):
    assert arrows(define(begin, again)) == [
        ("StartEvent", "begin"),
        ("begin", "Next"),
        ("begin", "StopEvent"),
        ("Next", "again"),
        ("again", "StartEvent"),
        ("again", "Next"),
        ("again", "StopEvent"),
    ]


def test_c273_a_fork_leads_through_its_branches_to_the_join(forking):
    drawn = arrows(forking)

    assert drawn[:4] == [("Asked", "Split"), ("Split", "Work"), ("Work", "Page", "pages"), ("Work", "Figures", "figures")]
    assert ("Read", "Gather", "pages") in drawn
    assert ("Read", "StopEvent") not in drawn
    assert ("Work", "Gather") not in drawn
    assert ("Gather", "StopEvent") in drawn


def test_a_fork_inside_a_branch_meets_at_its_own_join_whose_end_is_that_of_the_branch(forking):
    drawn = arrows(forking)

    assert ("Sides", "Left", "left") in drawn
    assert ("left", "Weigh", "left") in drawn
    assert ("right", "Weigh", "right") in drawn
    assert ("Weigh", "Checked") in drawn
    assert ("Check", "Gather", "figures") in drawn


def test_a_fork_that_opens_itself_again_is_drawn_once(define):
    class Deeper(ParallelEvent):
        declared_branches: ClassVar = {"down": Next}

    def dig(event: StartEvent, state: WorkflowState) -> Deeper:
        return Deeper({"down": Next()})

    def deeper(event: Next, state: WorkflowState) -> Deeper | StopEvent:
        return StopEvent()

    def join(event: Deeper, state: WorkflowState) -> StopEvent:
        return StopEvent()

    drawn = arrows(define(dig, deeper, join))
    assert sorted(drawn) == [
        ("Deeper", "Next", "down"),
        ("Next", "deeper"),
        ("StartEvent", "dig"),
        ("deeper", "Deeper"),
        ("deeper", "join", "down"),
        ("dig", "Deeper"),
        ("join", "StopEvent"),
        ("join", "join", "down"),
    ]


def test_a_fork_without_a_join_still_shows_its_branches(define):
    class Split(ParallelEvent):
        declared_branches: ClassVar = {"only": Next}

    def fork(event: StartEvent, state: WorkflowState) -> Split:
        return Split({"only": Next()})

    def work(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent()

    drawn = arrows(define(fork, work))
    assert drawn[2:] == [("Split", "Next", "only"), ("Next", "work"), ("work", "StopEvent")]


def test_a_fork_that_declares_nothing_leads_to_its_join(define):
    class Split(ParallelEvent):
        pass

    def fork(event: StartEvent, state: WorkflowState) -> Split:
        return Split({"only": Next()})

    def join(event: Split, state: WorkflowState) -> StopEvent:
        return StopEvent()

    assert arrows(define(fork, join)) == [
        ("StartEvent", "fork"),
        ("fork", "Split"),
        ("Split", "join"),
        ("join", "StopEvent"),
    ]


def test_a_node_that_nothing_reaches_is_shown_with_a_root_of_its_own(forking):
    picture = forking.picture()
    assert [picture.boxes[root].label for root in picture.roots] == ["Asked", "Lost"]
    assert ("Unreached", "StopEvent") in arrows(forking)


def test_a_cycle_that_nothing_reaches_is_shown_from_its_first_node(define):
    def there(event: Next, state: WorkflowState) -> Other:
        return Other()

    def back(event: Other, state: WorkflowState) -> Next:
        return Next()

    def start(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    assert define(there, back, start).picture().roots == ("StartEvent", "Next")


def test_what_leads_to_the_others_comes_first_among_those_that_nothing_reaches(define):
    def after(event: Other, state: WorkflowState) -> StopEvent:
        return StopEvent()

    def before(event: Next, state: WorkflowState) -> Other:
        return Other()

    assert define(after, before).picture().roots == ("Next",)


def test_generators_lead_to_the_events_that_they_return(define):
    def yielding(event: StartEvent, state: WorkflowState) -> Generator[str, None, Next | Other]:
        yield "item"
        return Next()

    async def streaming(event: Next, state: WorkflowState) -> AsyncGenerator[str | StopEvent, None]:
        yield "item"
        yield StopEvent()

    assert arrows(define(yielding, streaming)) == [
        ("StartEvent", "yielding"),
        ("yielding", "Next"),
        ("yielding", "Other"),
        ("Next", "streaming"),
        ("streaming", "StopEvent"),
    ]


def test_what_a_node_describes_stands_in_place_of_its_annotation(define):
    class Route(Node):
        described_transitions: ClassVar = {"it is new": Next, "it is known": StopEvent}

        def __call__(self, event: StartEvent, state: WorkflowState) -> Event:
            return Next()

    class Go(Node):
        described_transitions = (StopEvent,)

        def __call__(self, event: Next, state: WorkflowState) -> Event:
            return StopEvent()

    assert arrows(define(Route(), Go())) == [
        ("StartEvent", "Route"),
        ("Route", "Next", "it is new"),
        ("Route", "StopEvent", "it is known"),
        ("Next", "Go"),
        ("Go", "StopEvent"),
    ]


@pytest.mark.parametrize("described", [5, "Next", (5,), {"a": "Next"}, {5: Next}], ids=repr)
def test_a_description_of_no_events_is_a_graph_error(define, described):
    class Route(Node):
        step_name = "route"
        described_transitions = described

        def __call__(self, event: StartEvent, state: WorkflowState) -> Event:
            return Next()

    with pytest.raises(GraphError, match=r"'route'.*described_transitions"):
        define(Route()).picture()


def test_a_start_event_without_a_node_is_a_graph_error(define):
    with pytest.raises(GraphError, match="start event Other"):
        define(begin, again, start_event=Other()).picture()


def test_without_a_start_event_of_its_own_a_workflow_is_shown_from_what_nothing_leads_to(define):
    def ship(event: Other, state: WorkflowState) -> StopEvent:
        return StopEvent()

    assert arrows(define(ship)) == [("Other", "ship"), ("ship", "StopEvent")]


def test_a_workflow_without_nodes_has_an_empty_picture(define):
    assert define().export() == "graph TD"


def test_c316_labels_of_local_and_anonymous_classes_are_short_and_plain(define):
    class Local(Begin):
        pass

    odd = type("/home/somebody/orders.py:12\x01\u202eNode\n", (Begin,), {"step_name": "odd"})
    assert _node_labels(define(Local(), again)) == ["Local", "again"]
    assert _node_labels(define(odd(), again)) == ["orders py 12 Node", "again"]


def _node_labels(workflow):
    return [box.label for box in workflow.picture().boxes.values() if box.step is not None]


def test_c316_a_class_without_a_usable_name_has_a_label_all_the_same(define):
    nameless = type("\x01\x02", (Begin,), {"step_name": "first"})
    assert _node_labels(define(nameless(), again)) == ["unnamed", "again"]


def test_boxes_with_one_label_and_words_of_mermaid_have_ids_of_their_own(define):
    def end(event: StartEvent, state: WorkflowState) -> Next:
        return Next()

    class Next_(Node):
        def __call__(self, event: Next, state: WorkflowState) -> StopEvent:
            return StopEvent()

    Next_.__name__ = "Next"
    picture = define(end, Next_()).picture()
    assert list(picture.boxes) == ["StartEvent", "end_", "Next", "Next_2", "StopEvent"]


def test_a_picture_asks_for_no_store_and_no_resources(define, store):
    def asked() -> WorkflowResources:
        raise AssertionError("resources were asked for")

    define(begin, again, resources=asked, workflow_id=None).export(MermaidExporter())
    assert store.calls == []
