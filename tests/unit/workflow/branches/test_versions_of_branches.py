"""Whether another definition may continue a run whose fork is open: asked before the claim, in every branch."""

from collections.abc import Callable
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    ParallelEvent,
    RefusalReason,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    await_event,
    branch_id,
)


class Fork(ParallelEvent):
    pass


class Inner(ParallelEvent):
    pass


class First(Event):
    pass


class Second(Event):
    pass


class Third(Event):
    pass


def fork(event: StartEvent, state: WorkflowState) -> Fork:
    return Fork({"a": First(), "b": First(), "nested": Third()})


def first(event: First, state: WorkflowState) -> Second:
    return Second()


def nest(event: Third, state: WorkflowState) -> Inner:
    return Inner({"deep": First()})


def inner_join(event: Inner, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


@pytest.fixture
def waiting(concurrent, gates) -> Callable[..., Workflow]:
    """Return a workflow that waits in all three branches at once, and what makes it with some nodes replaced."""

    def second(event: Second, state: WorkflowState) -> StopEvent:
        gates.open(branch_id())
        for name in ("a", "b", "deep"):
            gates.wait(name)
        return StopEvent(await_event("go"))

    nodes = {node.__name__: node for node in (fork, first, second, nest, inner_join, join)}

    def make(**replaced: Any) -> Workflow:
        return concurrent(*(node for node in {**nodes, **replaced}.values() if node is not None))

    make().run()
    assert make().inspect().deferred_interrupts == 2
    return make


def renamed(name: str, node: Callable[..., Any]) -> Callable[..., Any]:
    """The same node under another step name."""

    def other(event: Event, state: WorkflowState) -> Any:
        return node(event, state)

    other.__annotations__ = dict(node.__annotations__)
    other.__qualname__ = name
    return other


def answered(definition: Workflow) -> Any:
    state = definition.run(ExecutionRequest.signal("go", 1))
    while state.is_interrupted():
        state = definition.run(ExecutionRequest.signal("go", 1))
    return state.execution.result


ENDED = {"a": 1, "b": 1, "nested": {"deep": 1}}


def test_the_same_nodes_continue_an_open_fork(waiting) -> None:
    assert answered(waiting()) == ENDED


def test_a_node_that_made_a_step_of_a_branch_must_keep_its_name(waiting, store) -> None:
    refused_unchanged(waiting(first=renamed("other", first)), store)


def test_a_node_whose_wait_is_deferred_must_keep_its_name(waiting, store) -> None:
    def second(event: Second, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    refused_unchanged(waiting(second=second), store)


def test_the_node_of_an_inner_branch_must_be_there(waiting, store) -> None:
    refused_unchanged(waiting(nest=None), store)


@pytest.mark.parametrize("missing", ["join", "inner_join"])
def test_an_open_fork_needs_its_join(waiting, store, missing) -> None:
    refused_unchanged(waiting(**{missing: None}), store)


@pytest.mark.parametrize("name", ["join", "inner_join"])
def test_a_join_that_has_not_run_yet_may_be_renamed(waiting, name) -> None:
    node = {"join": join, "inner_join": inner_join}[name]
    assert answered(waiting(**{name: renamed("other", node)})) == ENDED


def test_nodes_of_a_fork_that_is_closed_may_go(define, run) -> None:
    def end(event: Second, state: WorkflowState) -> StopEvent:
        return StopEvent(2)

    def split(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": First()})

    def gone(event: First, state: WorkflowState) -> Second:
        return Second()

    def more(event: Fork, state: WorkflowState) -> Third:
        state["results"] = event.results
        return Third()

    def wait(event: Third, state: WorkflowState) -> StopEvent:
        return StopEvent([state["results"], await_event("go")])

    run(define(split, gone, end, more, wait))
    assert run(define(split, more, wait), ExecutionRequest.signal("go", 1)).execution.result == [{"a": 2}, 1]


def refused_unchanged(definition: Workflow, store: Any) -> None:
    before = store.load("w")
    with pytest.raises(WorkflowRefusedError) as refused:
        definition.run(ExecutionRequest.signal("go", 1))
    assert refused.value.reason is RefusalReason.INCOMPATIBLE_VERSION
    assert store.load("w") == before
