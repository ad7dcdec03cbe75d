"""A wait knows where on the bus it listens from: where the bus stood before its node was first called."""

import itertools
from collections.abc import Sequence

import pytest

from workflow import (
    START_OF_RUN,
    Event,
    ExecutionRequest,
    ParallelEvent,
    StartEvent,
    StopEvent,
    WorkflowState,
    await_event,
    memoize,
)
from workflow import path as paths


class Next(Event):
    n: int = 1


class Fork(ParallelEvent):
    pass


class Side(Event):
    pass


class BusClock:
    """Stands for a bus: its position moves on whenever it is asked for."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.given: list[str] = []

    def __call__(self) -> str:
        self.given.append(f"p{next(self._numbers)}")
        return self.given[-1]

    def latest(self, positions: Sequence[str]) -> str:
        return max(positions, key=lambda position: int(position[1:]))


@pytest.fixture
def bus() -> BusClock:
    return BusClock()


def begin(event: StartEvent, state: WorkflowState) -> Next:
    return Next()


def since(workflow) -> str | None:
    """Where the wait that callers see listens from."""
    return workflow.inspect().interrupt.since


def test_the_first_step_listens_from_the_start_of_the_run(define, bus) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    workflow = define(ask, signal_position=bus)
    workflow.run()
    assert (since(workflow), bus.given) == ("p0", ["p0"])


def test_a_later_step_listens_from_the_moment_before_it_could_be_called(define, bus) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    workflow = define(begin, ask, signal_position=bus)
    workflow.run()
    assert (since(workflow), bus.given) == ("p1", ["p0", "p1"])


def test_a_recorded_start_listens_from_its_recording(define, bus) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    workflow = define(ask, signal_position=bus)
    workflow.ignite()
    workflow.run(ExecutionRequest.resume())
    assert since(workflow) == "p0"


def test_a_node_that_is_called_again_after_a_crash_still_listens_from_before_its_first_call(define, bus, fail_once) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        memoize("ask for it", lambda: None)  # from here on the answer may be published
        fail_once("crash")
        return StopEvent(await_event("answer"))

    workflow = define(begin, ask, signal_position=bus)
    with pytest.raises(Exception, match="crash"):
        workflow.run()
    workflow.run(ExecutionRequest.resume())
    assert since(workflow) == "p1"


def test_start_of_run_listens_from_the_start_in_any_step(define, bus) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go", since=START_OF_RUN))

    workflow = define(begin, ask, signal_position=bus)
    workflow.run()
    assert since(workflow) == "p0"


def test_a_position_that_the_node_names_is_kept(define, bus) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go", since="mine"))

    workflow = define(ask, signal_position=bus)
    workflow.run()
    assert since(workflow) == "mine"


def test_a_second_wait_listens_from_the_same_place_but_to_no_signal_twice(define, bus) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([await_event("go"), await_event("go"), await_event("go")])

    workflow = define(ask, signal_position=bus)
    workflow.run()
    workflow.run(ExecutionRequest.signal("go", 1, position="e7"))
    asked = workflow.inspect().interrupt
    assert (asked.since, asked.ended_by({}, "e7"), asked.ended_by({}, "e6")) == ("p0", False, True)
    workflow.run(ExecutionRequest.signal("go", 2))  # by hand: it has no place on the bus
    assert workflow.inspect().interrupt.used == ("e7",)
    assert workflow.run(ExecutionRequest.signal("go", 3)).execution.result == [1, 2, 3]


def test_the_branches_of_a_fork_listen_from_where_the_bus_stood_when_it_was_made(define, bus) -> None:
    def fork(event: Next, state: WorkflowState) -> Fork:
        return Fork({"one": Next(n=2), "two": Side()}) if event.n == 1 else Fork({"one": Side()})

    def side(event: Side, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent(dict(event.results))

    workflow = define(begin, fork, side, join, signal_position=bus)
    workflow.run()
    found = {since(workflow)}
    workflow.run(ExecutionRequest.signal("go", 1))
    found.add(since(workflow))
    # p2 was taken when the outer fork was committed, p3 when the inner one was.
    assert found == {"p2", "p3"}


def test_a_join_listens_from_where_its_branches_ended(define, bus) -> None:
    def fork(event: Next, state: WorkflowState) -> Fork:
        return Fork({"one": Side(), "two": Side()})

    def side(event: Side, state: WorkflowState) -> StopEvent:
        return StopEvent()

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    workflow = define(begin, fork, side, join, signal_position=bus)
    workflow.run()
    assert since(workflow) == "p4" == bus.given[-1]
    fail_again = define(begin, fork, side, join, signal_position=bus)
    fail_again.run(ExecutionRequest.resume())
    assert since(fail_again) == "p4"


def test_a_join_listens_from_the_same_place_after_a_crash(define, bus, fail_once) -> None:
    def fork(event: Next, state: WorkflowState) -> Fork:
        return Fork({"one": Side(), "two": Side()})

    def side(event: Side, state: WorkflowState) -> StopEvent:
        return StopEvent()

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        fail_once("crash")
        return StopEvent(await_event("go"))

    workflow = define(begin, fork, side, join, signal_position=bus)
    with pytest.raises(Exception, match="crash"):
        workflow.run()
    workflow.run(ExecutionRequest.resume())
    assert since(workflow) == "p4"


def test_folded_steps_leave_the_position_of_the_last(define, bus, monkeypatch) -> None:
    monkeypatch.setattr(paths, "FOLD_AFTER", 3)

    def count(event: Next, state: WorkflowState) -> Next | StopEvent:
        return StopEvent(await_event("go")) if event.n == 6 else Next(n=event.n + 1)

    workflow = define(begin, count, signal_position=bus)
    workflow.run()
    assert since(workflow) == bus.given[-1] == "p6"
    broken = define(begin, count, signal_position=bus)
    assert broken.run(ExecutionRequest.resume()).is_interrupted()
    assert since(broken) == "p6"


def test_without_a_bus_a_wait_listens_from_nowhere(define) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent([await_event("go"), await_event("go", since=START_OF_RUN)])

    workflow = define(begin, ask)
    workflow.run()
    assert since(workflow) is None
    workflow.run(ExecutionRequest.signal("go"))
    assert since(workflow) is None


def test_a_signal_keeps_its_position_through_a_queue() -> None:
    request = ExecutionRequest.signal("go", 1, position="e7")
    assert ExecutionRequest.from_json(request.to_json()) == request
