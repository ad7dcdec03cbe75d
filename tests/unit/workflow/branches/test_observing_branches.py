"""What listeners are told of branches that wait beside each other (J, T)."""

from typing import Any

import pytest

from tests.unit.workflow.branches.asking import answer
from workflow import (
    ConcurrentBranchRunner,
    Event,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    WorkflowState,
    await_event,
)
from workflow.observing import BranchEnded, BranchStarted, Ending, NodeEnded, NodeStarted, Observation


class Fork(ParallelEvent):
    pass


class Complete(Event):
    pass


class Wait(Event):
    pass


class Fail(Event):
    pass


def complete(event: Complete, state: WorkflowState) -> StopEvent:
    return StopEvent(1)


def wait(event: Wait, state: WorkflowState) -> StopEvent:
    return StopEvent(await_event("go"))


def fail(event: Fail, state: WorkflowState) -> StopEvent:
    raise ValueError


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


@pytest.mark.parametrize("runner", [SequentialBranchRunner(), ConcurrentBranchRunner()])
@pytest.mark.parametrize(("begins", "outcome"), [(Complete, Ending.COMPLETED), (Wait, Ending.SUSPENDED), (Fail, Ending.FAILED)])
def test_c195_the_start_of_a_branch_is_paired_with_its_end_and_both_carry_its_name(define, runner, begins, outcome) -> None:
    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"only": begins()})

    told: list[Observation] = []
    definition = define(fork, complete, wait, fail, join, branch_runner=runner, listeners=[told.append])
    if begins is Fail:
        with pytest.raises(ValueError):  # noqa: PT011 - the node's own
            definition.run()
    else:
        definition.run()
    branches = [one for one in told if isinstance(one, BranchStarted | BranchEnded)]
    assert [(type(one), one.branch) for one in branches] == [(BranchStarted, "only"), (BranchEnded, "only")]
    ended: Any = branches[1]
    assert ended.outcome is outcome
    nodes = [one for one in told if isinstance(one, NodeStarted | NodeEnded) and one.branch]
    assert [(type(one), one.branch) for one in nodes] == [(NodeStarted, "only"), (NodeEnded, "only")]


def test_c319_an_answer_to_one_branch_calls_no_node_of_those_that_still_wait(three, awaited, run) -> None:
    """Their branches may be passed over, which is told; that is no execution."""
    told: list[Observation] = []
    definition = three(listeners=[told.append])
    run(definition)
    told.clear()
    assert awaited(definition) == "a"
    run(definition, answer("a"))
    assert {one.branch for one in told if isinstance(one, NodeStarted | NodeEnded)} == {"a"}
    started = [one.branch for one in told if isinstance(one, BranchStarted)]
    ended = [one.branch for one in told if isinstance(one, BranchEnded)]
    assert sorted(map(str, started)) == sorted(map(str, ended))
