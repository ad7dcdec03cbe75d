"""Code around the call of every node (M, C310)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any

import pytest
from pydantic import Field

from persistence import InMemoryPersistence, Persistence
from workflow import (
    Event,
    ExecutionRequest,
    GraphError,
    Middleware,
    Node,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    emit,
    memoize,
)


class Next(Event):
    items: list[str] = Field(default_factory=list[str])


class Tell(Middleware):
    """Writes down when it is called, and with what."""

    def __init__(self, name: str, trace: list[str]) -> None:
        self.name = name
        self.trace = trace

    def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
        self.trace.append(f"{self.name} before")

    def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
        self.trace.append(f"{self.name} after")


class AsyncTell(Tell):
    async def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:  # pyright: ignore
        await asyncio.sleep(0)
        super().before(node, event, state, resources)

    async def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:  # pyright: ignore
        await asyncio.sleep(0)
        super().after(node, result, state, resources)


class First(Node):
    step_name = "first"

    def __call__(self, event: StartEvent, state: WorkflowState) -> Next:
        state.set("trace", [*state.get("trace", []), "first"])
        return Next()


def last(event: Next, state: WorkflowState) -> StopEvent:
    return StopEvent(event.items)


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: nothing here is a matter of the store."""
    return InMemoryPersistence()


@pytest.fixture
def trace() -> list[str]:
    """Return an empty list to write to."""
    return []


@pytest.fixture(params=["plain", "aio"])
def run(request) -> Callable[..., WorkflowState]:
    """Return both ways to run a workflow."""
    if request.param == "plain":
        return lambda workflow, asked=None: workflow.run(asked)
    return lambda workflow, asked=None: asyncio.run(workflow.aio.run(asked))


@pytest.fixture
def around(define) -> Callable[..., Workflow]:
    """Return what makes a workflow of two nodes with middleware."""

    def make(*middleware: Any, **options: Any) -> Workflow:
        return define(First(), last, middleware=middleware, **options)

    return make


# --- order ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Tell, AsyncTell])
def test_c213_all_befores_then_the_node_then_all_afters_in_the_same_order(around, run, trace, kind) -> None:
    """What is for every node comes first, then what is for this one, each in the order of its registration."""

    def node(event: Next, state: WorkflowState) -> StopEvent:
        trace.append("node")
        return StopEvent()

    def silent(event: StartEvent, state: WorkflowState) -> Next:
        return Next()

    mine, everywhere = (node, kind("M2", trace)), kind("M1", trace)
    definition = around(mine, everywhere, (node, kind("M3", trace)), (silent, Tell("other", []))).reconfigure(
        nodes=[silent, node]
    )
    run(definition)
    per_silent_node = ["M1 before", "M1 after"]
    expected = ["M1 before", "M2 before", "M3 before", "node", "M1 after", "M2 after", "M3 after"]
    assert trace == per_silent_node + expected


def test_the_hooks_middleware_comes_before_the_constructors(define, trace) -> None:
    class Hooked(Workflow):
        def middleware(self):
            return [(First, Tell("hook, one node", trace)), Tell("hook", trace)]

    added = [(First, Tell("added, one node", trace)), Tell("added", trace)]
    definition = define(First(), last, cls=Hooked, middleware=added)
    definition.run()
    assert trace[:4] == ["hook before", "added before", "hook, one node before", "added, one node before"]
    assert trace[8:] == ["hook before", "added before", "hook after", "added after"]


def test_a_key_names_a_class_its_parent_or_a_function(around, trace) -> None:
    class Special(First):
        pass

    around((First, Tell("parent", trace)), (Special, Tell("class", trace)), (last, Tell("function", trace))).reconfigure(
        nodes=[Special(), last]
    ).run()
    assert trace[:2] == ["parent before", "class before"]
    trace.clear()
    around((Node, Tell("every Node", trace)), (Special, Tell("class", trace))).run()
    assert trace == ["every Node before", "every Node after"]


def test_it_is_given_the_node_the_events_the_state_and_the_resources(around) -> None:
    seen: list[Any] = []

    class Look(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            seen.append((type(node), event, state.execution.run_id, resources))

        def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            seen.append((type(node), result, state.execution.run_id, resources))

    services = WorkflowResources()
    around((First, Look()), resources=services).run(ExecutionRequest.start(run_id="r"))
    assert seen == [(First, StartEvent(), "r", services), (First, Next(), "r", services)]


# --- what it may change -----------------------------------------------------------------------------------------------------


class Replace(Middleware):
    """Gives the node another event."""

    def __init__(self, event: Event | None) -> None:
        self.event = event

    def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> Event | None:
        return self.event


def test_c216_before_may_replace_the_event_and_later_ones_see_the_replacement(around, run) -> None:
    seen: list[Event] = []

    class Look(Middleware):
        async def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            seen.append(event)

    replaced = Next(items=["replaced"])
    assert run(around((last, Replace(replaced)), (last, Replace(None)), (last, Look()))).execution.result == ["replaced"]
    assert seen == [replaced]


@pytest.mark.parametrize("event", [StartEvent(), StopEvent()])
def test_a_replacement_of_another_class_fails_the_run_before_the_node(around, event) -> None:
    class Derived(Next):
        pass

    for wrong in (event, Derived()):
        definition = around((last, Replace(wrong)))
        with pytest.raises(WorkflowError, match=r"Replace\.before returned another kind of event"):
            definition.run()
        assert definition.inspect().status is WorkflowStatus.FAILED
        definition.abandon()


def test_c216_what_before_and_after_do_to_the_state_and_the_result_is_recorded(around, fail_once, trip) -> None:
    class Edit(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            state.set("trace", ["before"])

        def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            state.set("trace", [*state["trace"], "after"])
            assert isinstance(result, Next)
            result.items.append("added")

    class Fail(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            fail_once()

    definition = around((First, Edit()), (last, Fail()))
    with pytest.raises(trip):
        definition.run()
    state = definition.run()
    assert (state["trace"], state.execution.result) == (["before", "first", "after"], ["added"])


def test_c217_a_before_that_raises_stops_everything_behind_it(around, trace, trip, fail_once) -> None:
    class Fail(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            fail_once()

    definition = around((last, Tell("earlier", trace)), (last, Fail()), (last, Tell("later", trace)))
    with pytest.raises(trip):
        definition.run()
    assert trace == ["earlier before"]
    assert definition.inspect().status is WorkflowStatus.FAILED
    definition.run()
    assert trace == ["earlier before", "earlier before", "later before", "earlier after", "later after"]


def test_c217_an_after_that_raises_leaves_no_record_of_the_step(around, store, trace, trip, fail_once) -> None:
    class Fail(Middleware):
        def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            fail_once()

    definition = around((First, Fail()), (First, Tell("later", trace)))
    with pytest.raises(trip):
        definition.run()
    assert [key for key in store.load("w") if "first-0" in key] == []
    assert trace == ["later before"]
    assert definition.run()["trace"] == ["first"]


# --- suspension and replay --------------------------------------------------------------------------------------------------


def test_c218_a_suspension_has_no_after_and_the_resume_has_another_before(define, run, trace) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    definition = define(ask, middleware=[Tell("M", trace)])
    run(definition)
    assert trace == ["M before"]
    run(definition, ExecutionRequest.resume())
    assert trace == ["M before"]
    run(definition, ExecutionRequest.resume(1))
    assert trace == ["M before", "M before", "M after"]


def test_c219_a_replayed_step_has_no_middleware(define, trace, trip, fail_once) -> None:
    def fail(event: Next, state: WorkflowState) -> StopEvent:
        fail_once()
        return StopEvent()

    definition = define(First(), fail, middleware=[(First, Tell("M", trace))])
    with pytest.raises(trip):
        definition.run()
    definition.run()
    assert trace == ["M before", "M after"]


@pytest.mark.parametrize("kind", ["generator", "async generator"])
def test_after_is_called_once_when_a_generator_is_exhausted(define, run, trace, kind) -> None:
    def generator(event: StartEvent, state: WorkflowState) -> Generator[int, None, StopEvent]:
        yield from range(3)
        trace.append("exhausted")
        return StopEvent()

    async def async_generator(event: StartEvent, state: WorkflowState) -> AsyncGenerator[Any, None]:
        yield 1
        yield StopEvent()
        trace.append("exhausted")

    run(define(generator if kind == "generator" else async_generator, middleware=[Tell("M", trace)]))
    assert trace == ["M before", "exhausted", "M after"]


def test_middleware_may_use_memos_and_items_of_the_step(define) -> None:
    made: list[int] = []

    class Remember(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            emit(memoize("trace id", lambda: made.append(1) or len(made)))

    class RememberToo(Middleware):
        async def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            async def two() -> int:
                return 2

            emit(await amemoize("two", two))

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    definition = define(ask, middleware=[Remember(), RememberToo()])
    definition.run()
    assert list(definition.events(ExecutionRequest.resume(1))) == [1, 2]
    assert made == [1]


def test_middleware_may_wait_before_the_node(define, run) -> None:
    ran: list[Any] = []

    class Gate(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            state.set("approved", await_event("approval"))

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        ran.append(state["approved"])
        return StopEvent(state["approved"])

    definition = define(work, middleware=[Gate()])
    assert run(definition).interrupt_request.awaited_event == "approval"
    assert ran == []
    assert run(definition, ExecutionRequest.resume("yes")).execution.result == "yes"
    assert ran == ["yes"]


@pytest.mark.parametrize("where", ["before", "after"])
def test_middleware_that_swallows_a_suspension_fails_the_run(around, where) -> None:
    def swallow() -> None:
        try:
            await_event("go")
        except BaseException:  # noqa: BLE001 - what the test is about
            return

    class Swallow(Middleware):
        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            if where == "before":
                swallow()

        def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            if where == "after":
                swallow()

    definition = around(Swallow())
    with pytest.raises(WorkflowError, match="swallowed its own suspension"):
        definition.run()
    assert definition.inspect().status is WorkflowStatus.FAILED


def test_a_wait_after_the_node_runs_the_node_again_once_it_is_answered(around) -> None:
    class Confirm(Middleware):
        def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            state.set("confirmed", await_event("confirmation"))

    definition = around((First, Confirm()))
    assert definition.run().is_interrupted()
    state = definition.run(ExecutionRequest.resume(True))
    assert (state["trace"], state["confirmed"]) == (["first"], True)


# --- registration -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [Tell, "text", None, First(), (First, First()), (First, Tell)])
def test_c220_what_is_no_middleware_is_refused_where_it_is_registered(around, wrong) -> None:
    with pytest.raises(GraphError, match="is no middleware"):
        around(wrong)
    with pytest.raises(GraphError, match="is no middleware"):
        around().reconfigure(middleware=[wrong])


@pytest.mark.parametrize("key", ["First", 1, None, First(), Next, StopEvent, WorkflowState, str, int])
def test_c220_a_key_that_can_be_no_node_is_refused(around, trace, key) -> None:
    with pytest.raises(GraphError, match="name a node class or a node function"):
        around((key, Tell("M", trace)))


def test_c220_a_hook_that_registers_nonsense_fails_the_run_like_any_graph_error(define) -> None:
    class Hooked(Workflow):
        def middleware(self):
            return ["nonsense"]

    definition = define(First(), last, cls=Hooked)
    with pytest.raises(GraphError, match="is no middleware"):
        definition.run()
    assert definition.inspect().status is WorkflowStatus.FAILED


def test_c310_one_wrong_entry_registers_nothing(around, trace) -> None:
    definition = around(Tell("kept", trace))
    with pytest.raises(GraphError):
        definition.reconfigure(middleware=[Tell("new", trace), (First, Tell("new", trace)), "nonsense"])
    definition.run()
    assert set(trace) == {"kept before", "kept after"}


def test_c221_one_instance_serves_all_segments(define) -> None:
    """Instances are not copied: what they count is theirs, across segments and runs."""

    class Count(Middleware):
        calls = 0

        def before(self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources) -> None:
            self.calls += 1

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("go"))

    count = Count()
    definition = define(ask, middleware=(one for one in [count]))
    definition.run()
    definition.run(ExecutionRequest.resume(1))
    definition.for_id("other").run()
    assert count.calls == 3


def test_a_hook_that_is_a_plain_function_may_return_an_awaitable(define, run) -> None:
    """As the annotation of `Middleware.before` allows."""

    async def replaced() -> Next:
        return Next(items=["awaited"])

    class Delegating(Middleware):
        def before(
            self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources
        ) -> Awaitable[Event | None]:
            return replaced()

    assert run(define(First(), last, middleware=[(last, Delegating())])).execution.result == ["awaited"]
