"""What listeners are told of a run, and that they never alter it (Q)."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pydantic import Field

from persistence import InMemoryPersistence, Persistence
from workflow import (
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    GraphError,
    Middleware,
    ParallelEvent,
    SequentialBranchRunner,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    emit,
    memoize,
)
from workflow.observing import (
    BranchEnded,
    BranchStarted,
    Ending,
    ItemEmitted,
    ListenerFailed,
    MemoEnded,
    MemoStarted,
    MiddlewareEnded,
    MiddlewareStarted,
    NodeEnded,
    NodeStarted,
    Observation,
    WorkflowEnded,
    WorkflowFailed,
    WorkflowInterrupted,
)

PATIENCE = 10.0
"""Seconds after which something that has not come fails its test."""
PAIRS: dict[type[Observation], type[Observation]] = {
    NodeStarted: NodeEnded,
    MiddlewareStarted: MiddlewareEnded,
    BranchStarted: BranchEnded,
    MemoStarted: MemoEnded,
}


class Next(Event):
    pass


class Left(Event):
    pass


class Right(Event):
    pass


class Inner(Event):
    pass


class Order(StartEvent):
    items: list[str] = Field(default_factory=list[str])


class Around(Middleware):
    pass


class Ears:
    """A listener that remembers all."""

    def __init__(self) -> None:
        self.heard: list[Observation] = []

    def __call__(self, observation: Observation) -> None:
        self.heard.append(observation)

    @property
    def names(self) -> list[str]:
        return [type(one).__name__ for one in self.heard]

    def all(self, kind: type[Any]) -> list[Any]:
        return [one for one in self.heard if isinstance(one, kind)]

    def assert_paired(self) -> None:
        """Every start has exactly one end, after it, and what is inside a branch or a node lies within."""
        for start, end in PAIRS.items():
            opened: Counter[Any] = Counter()
            for one in self.heard:
                if isinstance(one, start):
                    opened[_identity(one)] += 1
                elif isinstance(one, end):
                    opened[_identity(one)] -= 1
                    assert opened[_identity(one)] >= 0, f"{one} ended before it started"
            assert not +opened, f"never ended: {+opened}"
        assert self.names.count("WorkflowEnded") == len({one.execution.attempt for one in self.heard})
        assert self.names[-1] == "WorkflowEnded"


def _identity(one: Any) -> Any:
    names = ("source", "branch", "step_id", "middleware", "phase", "memo")
    return (one.execution.attempt, *(getattr(one, name, None) for name in names))


def first(event: StartEvent, state: WorkflowState) -> Next:
    return Next()


def last(event: Next, state: WorkflowState) -> StopEvent:
    return StopEvent("done")


def asking(event: Next, state: WorkflowState) -> StopEvent:
    return StopEvent(await_event("go"))


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


@pytest.fixture
def ears() -> Ears:
    """Return a listener that remembers all."""
    return Ears()


@pytest.fixture(params=["plain", "aio"])
def run(request) -> Callable[..., WorkflowState]:
    """Return both ways to run a workflow."""
    if request.param == "plain":
        return lambda workflow, asked=None: workflow.run(asked)
    return lambda workflow, asked=None: asyncio.run(workflow.aio.run(asked))


# --- what is told, and when -------------------------------------------------------------------------------------------------


def test_c265_a_linear_run_is_told_in_order(define, run, ears) -> None:
    run(define(first, last, listeners=[ears], middleware=[Around()]))
    per_node = ["NodeStarted", *["MiddlewareStarted", "MiddlewareEnded"] * 2, "NodeEnded"]
    assert ears.names == ["WorkflowStarted", *per_node, *per_node, "WorkflowEnded"]
    assert ears.heard[0].nodes == ("first", "last")
    assert [(one.middleware, one.phase.value, one.source) for one in ears.all(MiddlewareEnded)] == [
        ("Around", phase, node) for node in ("first", "last") for phase in ("before", "after")
    ]
    assert all(one.seconds >= 0 for one in ears.all((NodeEnded, WorkflowEnded)))
    ears.assert_paired()


def test_c266_a_nodes_end_says_how_it_ended(define, run, ears, fail_once, trip) -> None:
    def failing(event: StartEvent, state: WorkflowState) -> Next:
        fail_once()
        return Next()

    definition = define(failing, asking, listeners=[ears])
    with pytest.raises(trip) as failure:
        run(definition)
    assert [(one.outcome, one.error) for one in ears.all(NodeEnded)] == [(Ending.FAILED, failure.value)]
    assert ears.names[-2:] == ["WorkflowFailed", "WorkflowEnded"]
    assert ears.all(WorkflowFailed)[0].error is failure.value
    ears.assert_paired()

    ears.heard.clear()
    run(definition)
    assert [one.outcome for one in ears.all(NodeEnded)] == [Ending.COMPLETED, Ending.SUSPENDED]
    assert ears.names[-2:] == ["WorkflowInterrupted", "WorkflowEnded"]
    assert ears.all(WorkflowInterrupted)[0].request.awaited_event == "go"
    assert ears.heard[-1].outcome is Ending.SUSPENDED
    ears.assert_paired()

    ears.heard.clear()
    run(definition, ExecutionRequest.resume(1))
    assert [one.outcome for one in ears.all(NodeEnded)] == [Ending.COMPLETED]
    assert ears.heard[-1].outcome is Ending.COMPLETED


def test_each_bears_its_execution_with_a_start_event_of_its_own(define, ears) -> None:
    def begin(event: Order, state: WorkflowState) -> StopEvent:
        return StopEvent(event.items)

    def spoil(observation: Observation) -> None:
        observation.execution.start_event.items.append("spoilt")

    definition = define(begin, listeners=[spoil, ears]).reconfigure(name="orders")
    state = definition.run(ExecutionRequest.start(Order(items=["flour"]), run_id="r", tag="t"))
    assert state.execution.result == ["flour"]
    assert {
        (one.execution.workflow_id, one.execution.run_id, one.execution.attempt, one.execution.name, one.execution.tag)
        for one in ears.heard
    } == {("w", "r", 1, "orders", "t")}
    assert ears.heard[-1].execution.start_event == Order(items=["flour"])
    assert ears.heard[0].source == "orders"


def test_observations_are_frozen(define, ears) -> None:
    define(first, last, listeners=[ears]).run()
    with pytest.raises(FrozenInstanceError):
        ears.heard[0].source = "another"


def test_a_replayed_step_an_idle_poll_a_retained_outcome_and_a_refusal_tell_nothing(define, run, ears) -> None:
    definition = define(first, asking, listeners=[ears], retain_completion=True)
    run(definition)
    ears.heard.clear()
    run(definition, ExecutionRequest.resume())
    assert ears.heard == []
    run(definition, ExecutionRequest.resume(1))
    assert [one.source for one in ears.all(NodeStarted)] == ["asking"]
    ears.heard.clear()
    run(definition, ExecutionRequest.resume())
    with pytest.raises(WorkflowRefusedError):
        run(definition, ExecutionRequest.resume(2, expected_run_id="another"))
    assert ears.heard == []


def test_an_end_is_told_when_it_is_recorded(define, store) -> None:
    seen: list[tuple[str, WorkflowStatus | None]] = []

    def look(observation: Observation) -> None:
        if isinstance(observation, WorkflowInterrupted | WorkflowFailed | WorkflowEnded):
            found = definition.inspect()
            seen.append((type(observation).__name__, found.status if found else None))

    def fail(event: Next, state: WorkflowState) -> StopEvent:
        await_event("go")
        raise ValueError("trouble")

    definition = define(first, fail, listeners=[look])
    definition.run()
    with pytest.raises(ValueError, match="trouble"):
        definition.run(ExecutionRequest.resume(1))
    suspended, failed = WorkflowStatus.SUSPENDED, WorkflowStatus.FAILED
    assert seen == [
        ("WorkflowInterrupted", suspended),
        ("WorkflowEnded", suspended),
        ("WorkflowFailed", failed),
        ("WorkflowEnded", failed),
    ]


def test_a_segment_without_a_graph_tells_that_it_failed(define, ears) -> None:
    with pytest.raises(GraphError):
        define(listeners=[ears]).run()
    assert ears.names == ["WorkflowFailed", "WorkflowEnded"]


def test_a_memo_is_told_only_when_it_is_made(define, run, ears) -> None:
    def remember(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("once", lambda: 1)
        return StopEvent(await_event("go"))

    definition = define(remember, listeners=[ears])
    run(definition)
    run(definition, ExecutionRequest.resume(1))
    assert [(one.memo, one.outcome) for one in ears.all(MemoEnded)] == [("once", Ending.COMPLETED)]
    ears.assert_paired()


@pytest.mark.parametrize("phase", ["before", "after"])
def test_middleware_that_waits_is_suspended_and_one_that_raises_has_failed(define, run, ears, phase) -> None:
    class Gate(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: Any) -> None:
            if phase == "before" and await_event("go") == "fail":
                raise ValueError("trouble")

        def after(self, node: Any, result: Event, state: WorkflowState, resources: Any) -> None:
            if phase == "after" and await_event("go") == "fail":
                raise ValueError("trouble")

    definition = define(first, last, listeners=[ears], middleware=[(first, Gate())])
    run(definition)
    with pytest.raises(ValueError, match="trouble"):
        run(definition, ExecutionRequest.resume("fail"))
    ends = [one.outcome for one in ears.all(MiddlewareEnded) if one.phase.value == phase]
    assert ends == [Ending.SUSPENDED, Ending.FAILED]
    ears.assert_paired()


# --- items ------------------------------------------------------------------------------------------------------------------


def test_c269_what_a_listener_raises_at_an_item_comes_out_of_emit(define, run) -> None:
    def refuse(observation: Observation) -> None:
        if isinstance(observation, ItemEmitted):
            raise ValueError("refused")

    def emitting(event: StartEvent, state: WorkflowState) -> StopEvent:
        try:
            emit("item")
        except ValueError as error:
            return StopEvent(str(error))
        return StopEvent("nothing was raised")

    assert run(define(emitting, listeners=[refuse])).execution.result == "refused"


def test_items_are_told_untouched_whether_emitted_or_yielded(define, ears) -> None:
    one, two = object(), object()

    def emitting(event: StartEvent, state: WorkflowState) -> Generator[object, None, StopEvent]:
        emit(one)
        yield two
        return StopEvent()

    definition = define(emitting, listeners=[ears])
    assert list(definition.events()) == [one, two]
    assert [told.item for told in ears.all(ItemEmitted)] == [one, two]


# --- listeners that fail ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("deaf"), asyncio.CancelledError(), GeneratorExit()])
def test_c268_a_listener_that_raises_is_reported_to_the_others_and_the_run_goes_on(define, run, ears, caplog, error) -> None:
    def deaf(observation: Observation) -> None:
        raise error

    with caplog.at_level(logging.ERROR):
        state = run(define(first, last, listeners=[deaf, ears]))
    assert state.execution.result == "done"
    reports = ears.all(ListenerFailed)
    told = [one for one in ears.heard if not isinstance(one, ListenerFailed)]
    assert [(report.observation, report.error) for report in reports] == [(one, error) for one in told]
    assert len(caplog.records) == len(told)


def test_c268_two_listeners_that_always_raise_report_no_reports(define, caplog) -> None:
    calls: list[str] = []

    def deaf(observation: Observation) -> None:
        calls.append(type(observation).__name__)
        raise ValueError("trouble")

    def deaf_too(observation: Observation) -> None:
        deaf(observation)

    assert define(first, last, listeners=[deaf, deaf_too]).run().execution.result == "done"
    assert Counter(calls) == {
        "WorkflowStarted": 2,
        "NodeStarted": 4,
        "NodeEnded": 4,
        "WorkflowEnded": 2,
        "ListenerFailed": 12,
    }


# --- registration -----------------------------------------------------------------------------------------------------------


def test_listeners_are_fixed_when_a_segment_begins(define, ears) -> None:
    class Hooked(Workflow):
        def listeners(self):
            return list(hooked)

    def joining(event: StartEvent, state: WorkflowState) -> Next:
        hooked.append(late)
        return Next()

    late, hooked = Ears(), [ears]
    given = Ears()
    definition = define(joining, asking, cls=Hooked, listeners=[given])
    definition.run()
    assert late.heard == []
    assert ears.names == given.names
    definition.listened_to_by(late).run(ExecutionRequest.resume(1))
    assert late.names[0] == "WorkflowStarted"
    assert given.heard[-1].execution.attempt == late.heard[-1].execution.attempt


@pytest.mark.parametrize("wrong", [None, "text", Ears])
def test_what_cannot_be_called_is_refused_where_it_is_registered(define, wrong) -> None:
    with pytest.raises(WorkflowError, match="is no listener"):
        define(first, last, listeners=[wrong])
    with pytest.raises(WorkflowError, match="is no listener"):
        define(first, last).reconfigure(listeners=[wrong])


def test_a_hook_that_names_no_listener_is_refused_before_the_claim(define, store) -> None:
    class Hooked(Workflow):
        def listeners(self):
            return ["nonsense"]

    with pytest.raises(WorkflowError, match="is no listener"):
        define(first, last, cls=Hooked).run()
    assert store.calls == []


# --- branches, and pairs whatever happens -----------------------------------------------------------------------------------


def fork(event: StartEvent, state: WorkflowState) -> ParallelEvent:
    return ParallelEvent({"left": Left(), "right": Right()})


def join(event: ParallelEvent, state: WorkflowState) -> StopEvent:
    return StopEvent([event.get_result("left"), event.get_result("right")])


def branch_node(kind: type[Event], how: str, fail: Callable[[], None]) -> Callable[..., Any]:
    """A node for a branch that completes, waits, or fails once."""

    def node(event: Any, state: WorkflowState) -> StopEvent:
        if how == "wait":
            return StopEvent(await_event("go"))
        if how == "fail":
            fail()
        return StopEvent(memoize("made", lambda: how))

    node.__annotations__["event"] = kind
    node.step_name = kind.__name__.lower()  # pyright: ignore[reportFunctionMemberAccess]
    return node


@pytest.mark.parametrize("runner", [SequentialBranchRunner(), ConcurrentBranchRunner(), ConcurrentBranchRunner(limit=1)])
@pytest.mark.parametrize("left", ["complete", "wait", "fail"])
@pytest.mark.parametrize("right", ["complete", "wait", "fail"])
def test_every_start_has_its_end_however_the_branches_end(define, run, ears, fail_once, trip, runner, left, right) -> None:
    nodes = [
        fork,
        join,
        branch_node(Left, left, lambda: fail_once("l")),
        branch_node(Right, right, lambda: fail_once("r")),
    ]
    definition = define(*nodes, listeners=[ears], branch_runner=runner, middleware=[Around()])
    asked = None
    for _ in range(6):
        try:
            state = run(definition, asked)
        except trip:
            asked = None
        else:
            if not state.is_interrupted():
                break
            asked = ExecutionRequest.resume("answer")
        ears.assert_paired()
    else:
        pytest.fail("the run did not complete")
    ears.assert_paired()
    ended = [(one.branch, one.outcome) for one in ears.all(BranchEnded)]
    for name, how in (("left", left), ("right", right)):
        outcomes = [outcome for branch, outcome in ended if branch == name]
        assert outcomes[-1] is Ending.COMPLETED
        assert outcomes.count(Ending.COMPLETED) >= 1
        assert how != "fail" or Ending.FAILED in outcomes
        assert how != "wait" or Ending.SUSPENDED in outcomes


def test_nodes_of_a_nested_branch_bear_its_name(define, run, ears) -> None:
    class Nested(ParallelEvent):
        pass

    def left(event: Left, state: WorkflowState) -> Nested:
        return Nested({"inner": Inner()})

    def inner_node(event: Inner, state: WorkflowState) -> StopEvent:
        return StopEvent(1)

    def meet(event: Nested, state: WorkflowState) -> StopEvent:
        return StopEvent(event.get_result("inner"))

    def right(event: Right, state: WorkflowState) -> StopEvent:
        return StopEvent(2)

    definition = define(fork, left, inner_node, meet, right, join, listeners=[ears])
    assert run(definition).execution.result == [1, 2]
    assert [one.branch for one in ears.all(NodeStarted)] == [None, "left", "inner", "left", "right", None]
    assert [one.branch for one in ears.all(BranchStarted)] == ["left", "inner", "right"]
    ears.assert_paired()


def test_the_sequential_runner_opens_no_branch_after_a_wait(define, ears, fail_once) -> None:
    waiting = branch_node(Left, "wait", fail_once)
    define(fork, join, waiting, branch_node(Right, "complete", fail_once), listeners=[ears]).run()
    assert [one.branch for one in ears.all(BranchStarted)] == ["left"]


@pytest.mark.parametrize("runner", [SequentialBranchRunner(), ConcurrentBranchRunner(limit=1), ConcurrentBranchRunner()])
def test_every_start_has_its_end_when_the_caller_is_cancelled(define, ears, runner) -> None:
    async def scenario() -> None:
        begun = asyncio.Event()

        async def left(event: Left, state: WorkflowState) -> StopEvent:
            begun.set()
            await asyncio.Event().wait()
            return StopEvent()

        async def right(event: Right, state: WorkflowState) -> StopEvent:
            await asyncio.Event().wait()
            return StopEvent()

        definition = define(fork, left, right, join, listeners=[ears], branch_runner=runner)
        running = asyncio.create_task(definition.aio.run())
        await asyncio.wait_for(begun.wait(), PATIENCE)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())
    ears.assert_paired()
    ends = ears.all((NodeEnded, BranchEnded, WorkflowEnded))
    assert {one.outcome for one in ends if one.branch is not None or isinstance(one, WorkflowEnded)} == {Ending.FAILED}
    assert isinstance(ears.all(WorkflowFailed)[0].error, asyncio.CancelledError)


def test_every_start_has_its_end_when_the_reader_stops(define, ears) -> None:
    ended = threading.Event()

    def endless(event: StartEvent, state: WorkflowState) -> Generator[int, None, StopEvent]:
        yield from range(1000)
        return StopEvent()

    def notice(observation: Observation) -> None:
        if isinstance(observation, WorkflowEnded):
            ended.set()

    with define(endless, listeners=[ears, notice]).events() as stream:
        next(stream)
    assert ended.wait(PATIENCE)
    ears.assert_paired()
    assert ears.heard[-1].outcome is Ending.FAILED


def test_a_run_that_is_cancelled_under_its_segment_has_failed(define, ears) -> None:
    def cancelling(event: StartEvent, state: WorkflowState) -> Next:
        definition.cancel()
        return Next()

    definition = define(cancelling, last, listeners=[ears])
    with pytest.raises(WorkflowRefusedError):
        definition.run()
    assert ears.names == ["WorkflowStarted", "NodeStarted", "NodeEnded", "WorkflowFailed", "WorkflowEnded"]
