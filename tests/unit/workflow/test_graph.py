"""What a definition may look like, and how each mistake is named before the first node runs (L)."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import pytest

from workflow import (
    Event,
    GraphError,
    Node,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
)

if TYPE_CHECKING:
    from decimal import Decimal as Hidden


class Next(Event):
    pass


class Sub(Next):
    pass


class Abstract(Event):
    @abstractmethod
    def meaning(self) -> str: ...


class Own(WorkflowState):
    field: int = 0


class Services(WorkflowResources):
    pass


def good(event: StartEvent, state: WorkflowState) -> StopEvent:
    """A node that nothing is wrong with."""
    return StopEvent("good")


def test_c203_a_start_event_without_a_node_is_refused(define, store) -> None:
    with pytest.raises(GraphError, match="start event Next"):
        define(good, start_event=Next()).run()
    assert define().inspect().status is WorkflowStatus.FAILED


def test_c204_two_nodes_for_one_event_are_refused(define) -> None:
    def other(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    with pytest.raises(GraphError, match="already exists") as caught:
        define(good, other).run()
    assert "good" in str(caught.value)
    assert "other" in str(caught.value)


def test_two_nodes_of_one_step_name_are_refused(define) -> None:
    def make(kind: type[Event]):
        def twin(event: kind, state: WorkflowState) -> StopEvent:
            return StopEvent()

        return twin

    with pytest.raises(GraphError, match="step name"):
        define(make(StartEvent), make(Next)).run()


def no_parameters() -> StopEvent: ...
def one_parameter(event: StartEvent) -> StopEvent: ...
def four_parameters(event: StartEvent, state: WorkflowState, resources: WorkflowResources, more: int) -> StopEvent: ...
def untyped_event(event, state: WorkflowState) -> StopEvent: ...
def union_of_events(event: StartEvent | Next, state: WorkflowState) -> StopEvent: ...
def any_event(event: Event, state: WorkflowState) -> StopEvent: ...
def abstract_event(event: Abstract, state: WorkflowState) -> StopEvent: ...
def no_event(event: int, state: WorkflowState) -> StopEvent: ...
def any_at_all(event: Any, state: WorkflowState) -> StopEvent: ...
def list_of_events(event: list[StartEvent], state: WorkflowState) -> StopEvent: ...
def untyped_state(event: StartEvent, state) -> StopEvent: ...
def no_state(event: StartEvent, state: dict[str, Any]) -> StopEvent: ...
def untyped_resources(event: StartEvent, state: WorkflowState, resources) -> StopEvent: ...
def no_resources(event: StartEvent, state: WorkflowState, resources: int) -> StopEvent: ...
def untyped_return(event: StartEvent, state: WorkflowState): ...
def any_return(event: StartEvent, state: WorkflowState) -> Any: ...
def text_return(event: StartEvent, state: WorkflowState) -> str: ...
def none_return(event: StartEvent, state: WorkflowState) -> None: ...
def half_return(event: StartEvent, state: WorkflowState) -> Next | str: ...
def hidden_type(event: StartEvent, state: "Hidden") -> StopEvent: ...
def misspelt(event: "Strat", state: WorkflowState) -> StopEvent: ...  # pyright: ignore # noqa: F821
def attribute(event: "dt.StartEvent", state: WorkflowState) -> StopEvent: ...  # pyright: ignore # noqa: F821
def garbled(event: "not a type", state: WorkflowState) -> StopEvent: ...  # pyright: ignore # noqa: F722


BAD = [
    (no_parameters, "0 parameters"),
    (one_parameter, "1 parameters"),
    (four_parameters, "4 parameters"),
    (untyped_event, "parameter 'event'"),
    (union_of_events, "parameter 'event'"),
    (any_event, "parameter 'event'.*abstract"),
    (abstract_event, "parameter 'event'.*abstract"),
    (no_event, "parameter 'event'"),
    (any_at_all, "parameter 'event'"),
    (list_of_events, "parameter 'event'"),
    (untyped_state, "parameter 'state'"),
    (no_state, "parameter 'state'"),
    (untyped_resources, "parameter 'resources'"),
    (no_resources, "parameter 'resources'"),
    (untyped_return, "return type"),
    (any_return, "return type"),
    (text_return, "return type"),
    (none_return, "return type"),
    (half_return, "return type"),
    (hidden_type, "Hidden.*TYPE_CHECKING"),
    (misspelt, "Strat"),
    (attribute, "attribute"),
    (garbled, "garbled"),
]


@pytest.mark.parametrize(("node", "message"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_c205_c207_a_node_that_cannot_route_is_named_with_its_parameter(define, node, message) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        define(node).run()
    assert node.__name__ in str(caught.value)
    assert caught.value.permanent


@pytest.mark.parametrize("node", [Node(), object(), "text", 5, Node, None], ids=lambda node: type(node).__name__)
def test_what_is_no_node_at_all_is_a_graph_error(define, node) -> None:
    with pytest.raises(GraphError):
        define(node).run()


def test_c205_an_event_may_be_optional(define) -> None:
    def node(event: StartEvent | None, state: WorkflowState) -> StopEvent | None:
        return StopEvent(1)

    assert define(node).run().execution.result == 1


def test_c207_a_union_of_events_and_the_base_of_all_events_are_return_types(define) -> None:
    def first(event: StartEvent, state: WorkflowState) -> Event:
        return Next()

    def second(event: Next, state: WorkflowState) -> StopEvent | Next:
        return StopEvent(1)

    assert define(first, second).run().execution.result == 1


def test_c208_a_node_gets_the_state_class_it_asks_for_or_the_graph_is_refused(define) -> None:
    def needs_own(event: StartEvent, state: Own) -> StopEvent:
        return StopEvent(state.field)

    def needs_any(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(type(state) is Own)

    with pytest.raises(GraphError, match=r"'state'.*Own.*WorkflowState"):
        define(needs_own).run()
    define().abandon()
    assert define(needs_own, state=Own(field=3)).run().execution.result == 3
    assert define(needs_any, state=Own()).run().execution.result is True


def test_c209_the_same_for_resources(define) -> None:
    def needs_services(event: StartEvent, state: WorkflowState, services: Services) -> StopEvent:
        return StopEvent("served")

    with pytest.raises(GraphError, match=r"'services'.*Services.*WorkflowResources"):
        define(needs_services).run()
    define().abandon()
    assert define(needs_services, resources=Services).run().execution.result == "served"
    assert define(good, resources=Services()).run().execution.result == "good"


def test_c210_a_node_that_nothing_reaches_is_accepted(define) -> None:
    def unreached(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent()

    assert define(good, unreached).run().execution.result == "good"


def test_events_route_by_their_exact_class(define) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        return Sub()

    def after(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent()

    with pytest.raises(WorkflowError, match="no node handles Sub"):
        define(begin, after).run()


def test_nodes_are_objects_functions_methods_and_lambdas_of_a_class(define) -> None:
    class Counting(Node):
        step_name = "count"

        def __init__(self, start: int) -> None:
            self.start = start

        def __call__(self, event: StartEvent, state: WorkflowState) -> Next:
            state["count"] = self.start
            return Next()

    class Desk:
        def close(self, event: Next, state: WorkflowState) -> StopEvent:
            return StopEvent(state["count"])

    assert define(Counting(5), Desk().close).run().execution.result == 5


def test_c207_a_workflow_finds_its_state_class_in_its_bases(memory) -> None:
    class Typed(Workflow[Own]):
        def nodes(self):
            return [good]

    class Deeper(Typed):
        pass

    assert type(Deeper("w", persistence=memory).run()) is Own
