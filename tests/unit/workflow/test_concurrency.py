"""Threads that meet at one run, one definition or one node; and the two ways to call: plainly, and on an event loop."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    Node,
    RefusalReason,
    RunInFlightError,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    idempotency_key,
    interrupt_if,
    memoize,
    recall_memo,
)

PATIENCE = 10.0
"""Seconds after which a thread that has not come fails its test."""
A_MOMENT = 0.05
"""Seconds in which something that must not happen would have happened."""


class Numbered(Event):
    number: int = 0


class Next(Event):
    pass


def together(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returns or raises, all made at one moment in threads of their own."""
    barrier = threading.Barrier(len(calls))

    def at_once(call: Callable[[], Any]) -> Any:
        barrier.wait(PATIENCE)
        try:
            return call()
        except WorkflowError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(at_once, calls))


# --- racing threads ---------------------------------------------------------------------------------------------------------


def test_c065_of_many_threads_that_answer_one_run_one_is_heard(define) -> None:
    heard: list[Any] = []

    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        heard.append(await_event("go"))
        return StopEvent(heard[-1])

    for _ in range(20):
        heard.clear()
        first = define(ask, retain_completion=True).run().execution
        fence = {"expected_run_id": first.run_id, "expected_execution_attempt": 1}
        requests = [ExecutionRequest.resume(number, **fence) for number in range(4)]
        results = together(*[lambda request=request: define(ask, retain_completion=True).run(request) for request in requests])
        winners = [result for result in results if not isinstance(result, Exception)]
        assert [winner.execution.result for winner in winners] == heard
        assert len(heard) == 1
        losers = [result.reason for result in results if isinstance(result, WorkflowRefusedError)]
        assert losers == [RefusalReason.STALE_ATTEMPT] * 3
        define().acknowledge(first.run_id)


def test_of_many_starts_one_runs(define) -> None:
    ran: Counter[str] = Counter()

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        ran[state.execution.run_id] += 1
        await_event("never")
        return StopEvent()

    for _ in range(20):
        results = together(*[define(work).run] * 2, *[lambda: define(work).run(ExecutionRequest.start())] * 2)
        assert sum(isinstance(result, WorkflowState) for result in results) == 1
        assert sum(isinstance(result, RunInFlightError) for result in results) == 3
        define().abandon()
    assert set(ran.values()) == {1}


def test_of_many_recoveries_one_runs(define, fail_once, trip) -> None:
    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        fail_once(state.execution.run_id)
        await_event("never")
        return StopEvent()

    for _ in range(10):
        with pytest.raises(trip):
            define(work).run()
        run_id = define().inspect().run_id
        results = together(*[define(work).run] * 3)
        assert sum(isinstance(result, WorkflowState) for result in results) == 1
        assert define().inspect().run_id == run_id
        assert define().inspect().execution_attempt == 2
        define().abandon()


def test_c105_one_definition_serves_threads_with_different_ids(define) -> None:
    """And one node object with them: state, memos and contexts never meet."""
    barrier = threading.Barrier(4)

    class Work(Node):
        def __call__(self, event: Numbered, state: WorkflowState) -> Next:
            state["number"] = event.number
            barrier.wait(PATIENCE)
            state["memo"] = self.memoize("memo", lambda: event.number)
            barrier.wait(PATIENCE)
            state["again"] = self.recall_memo("memo")
            return Next()

    def end(event: Next, state: WorkflowState) -> StopEvent:
        barrier.wait(PATIENCE)
        return StopEvent([state["number"], state["memo"], state["again"], state.execution.workflow_id])

    definition = define(Work(), end)

    def run(number: int) -> Any:
        return definition.for_id(f"w{number}").run(ExecutionRequest.start(Numbered(number=number))).execution.result

    assert together(*[lambda number=number: run(number) for number in range(4)]) == [[n, n, n, f"w{n}"] for n in range(4)]


def test_a_workflow_may_run_another_inside_a_node(define) -> None:
    def inner(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([idempotency_key("k"), memoize("m", lambda: "inner")])

    def outer(event: StartEvent, state: WorkflowState) -> StopEvent:
        before = idempotency_key("k")
        nested = memoize("nested", lambda: define(inner, workflow_id="inner").run().execution.result)
        return StopEvent([before == idempotency_key("k"), nested[0] != before, nested[1], recall_memo("m")])

    assert define(outer).run().execution.result == [True, True, "inner", None]


def test_a_second_call_inside_the_first_meets_the_persisted_run(define) -> None:
    """C104: there is no lock in the process; the store refuses."""

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        with pytest.raises(RunInFlightError):
            definition.run()
        return StopEvent("once")

    for lease in (None, 60):
        definition = define(work, lease_timeout=lease)
        assert definition.run().execution.result == "once"


# --- async nodes ------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["plain", "aio"])
def run(request) -> Callable[..., WorkflowState]:
    """Return both ways to run a workflow."""
    if request.param == "plain":
        return lambda workflow, asked=None: workflow.run(asked)
    return lambda workflow, asked=None: asyncio.run(workflow.aio.run(asked))


def test_sync_and_async_nodes_mix_in_both_ways_of_calling(define, run) -> None:
    threads: dict[str, Any] = {}

    def first(event: StartEvent, state: WorkflowState) -> Numbered:
        threads["sync"] = running_loop()
        state["memo"] = memoize("m", lambda: 1)
        return Numbered(number=1)

    async def second(event: Numbered, state: WorkflowState) -> Next:
        threads["async"] = running_loop()
        state["amemo"] = await amemoize("m", one)
        return Next()

    async def third(event: Next, state: WorkflowState) -> StopEvent:
        await asyncio.sleep(0)
        return StopEvent([state["memo"], state["amemo"], await amemoize("m", one), recall_memo("m")])

    async def one() -> int:
        await asyncio.sleep(0)
        return 2

    assert run(define(first, second, third)).execution.result == [1, 2, 2, 2]
    assert (threads["sync"], bool(threads["async"])) == (None, True)


def running_loop() -> Any:
    """The event loop of this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def test_waits_and_failures_of_async_nodes_are_those_of_sync_ones(define, run, fail_once, trip) -> None:
    async def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        first = await_event("first")
        effect = await amemoize("effect", effected)
        fail_once()
        await asyncio.sleep(0)
        return StopEvent([first, effect, await_event("second")])

    done: list[int] = []

    async def effected() -> int:
        done.append(1)
        return len(done)

    definition = define(ask)
    assert run(definition).interrupt_request.event_name == "first"
    with pytest.raises(trip):
        run(definition, ExecutionRequest.signal("first", 1))
    assert run(definition).interrupt_request.event_name == "second"
    assert run(definition, ExecutionRequest.signal("second", 2)).execution.result == [1, 1, 2]


def test_a_wait_inside_an_async_memo_is_answered_there(define, run) -> None:
    async def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        async def closure() -> Any:
            await asyncio.sleep(0)
            return await_event("inner")

        return StopEvent([await amemoize("asked", closure), interrupt_if(True, WaitForEventRequest("outer"))])

    definition = define(ask)
    run(definition)
    run(definition, ExecutionRequest.signal("inner", 1))
    assert run(definition, ExecutionRequest.signal("outer", 2)).execution.result == [1, 2]


def test_memos_made_at_the_same_time_in_one_node_are_all_recorded(define, run, store) -> None:
    async def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        async def value(number: int) -> int:
            await asyncio.sleep(0)
            return number

        return StopEvent(list(await asyncio.gather(*[amemoize(f"m{n}", lambda n=n: value(n)) for n in range(5)])))

    assert run(define(work)).execution.result == [0, 1, 2, 3, 4]
    assert len(store.writes) == 7


def test_a_blocking_memo_in_an_async_node_names_the_other_form(define, run) -> None:
    async def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("m", lambda: 1)
        return StopEvent()

    with pytest.raises(WorkflowError, match="amemoize"):
        run(define(work))


def test_a_blocking_run_on_an_event_loop_names_the_other_form(define, store) -> None:
    async def main() -> None:
        define().run()

    with pytest.raises(WorkflowError, match=r"workflow\.aio\.run\(\)"):
        asyncio.run(main())
    assert store.calls == []


def test_async_nodes_of_plain_runs_share_one_loop_of_the_process(define) -> None:
    loops: list[Any] = []

    async def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        loops.append(running_loop())
        return StopEvent()

    for _ in range(3):
        define(work).run()
    assert len(set(map(id, loops))) == 1


def test_many_runs_share_an_event_loop(define) -> None:
    inside = 0

    async def work(event: Numbered, state: WorkflowState) -> StopEvent:
        nonlocal inside
        inside += 1
        async with asyncio.timeout(PATIENCE):
            while inside < 3:
                await asyncio.sleep(0)
        return StopEvent([event.number, await amemoize("m", number_of(event))])

    def number_of(event: Numbered) -> Callable[[], Any]:
        async def number() -> int:
            return event.number

        return number

    async def main() -> list[Any]:
        definition = define(work)
        runs = [definition.for_id(f"w{n}").aio.run(ExecutionRequest.start(Numbered(number=n))) for n in range(3)]
        return [state.execution.result for state in await asyncio.gather(*runs)]

    assert asyncio.run(main()) == [[0, 0], [1, 1], [2, 2]]


def test_the_other_calls_have_their_async_forms(define) -> None:
    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(1)

    async def main() -> None:
        aio = define(work, retain_completion=True).aio
        assert await aio.inspect() is None
        assert await aio.ignite(run_id="r") == "r"
        snapshot = await aio.inspect()
        assert snapshot is not None
        assert snapshot.status is WorkflowStatus.PENDING
        assert (await aio.run(ExecutionRequest.resume())).execution.result == 1
        await aio.acknowledge("r")
        assert await aio.abandon() is False

    asyncio.run(main())


# --- cancelled callers ------------------------------------------------------------------------------------------------------


def cancelled_at(define, at: Callable[[asyncio.Task[Any]], None], *nodes: Any, **options: Any) -> None:
    """Run on a loop of its own with a task that `at` may cancel, and expect that it was."""

    async def main() -> None:
        task = asyncio.ensure_future(define(*nodes, **options).aio.run())
        at(task)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_cancelled_async_node_fails_the_run(define) -> None:
    cleaned: list[bool] = []

    async def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        if state.execution.attempt == 1:
            asyncio.current_task().cancel()  # pyright: ignore
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                cleaned.append(True)
        return StopEvent("recovered")

    cancelled_at(define, lambda task: None, work)
    assert cleaned == [True]
    assert define().inspect().status is WorkflowStatus.FAILED
    assert define(work).run().execution.result == "recovered"


def test_a_cancelled_caller_does_not_wait_for_a_sync_node_which_can_write_nothing_more(define) -> None:
    release, errors = threading.Event(), list[BaseException]()
    ended = threading.Event()

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        if state.execution.attempt > 1:
            return StopEvent("recovered")
        loop.call_soon_threadsafe(tasks[0].cancel)
        assert release.wait(PATIENCE)
        try:
            memoize("late", lambda: 1)
        except WorkflowRefusedError as error:
            errors.append(error)
        ended.set()
        return StopEvent()

    tasks: list[asyncio.Task[Any]] = []

    async def main() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        tasks.append(asyncio.ensure_future(define(work).aio.run()))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert define().inspect().status is WorkflowStatus.FAILED
        release.set()

    loop: Any = None
    asyncio.run(main())
    assert ended.wait(PATIENCE)
    assert [error.reason for error in errors] == [RefusalReason.STALE_ATTEMPT]  # pyright: ignore
    assert define(work).run().execution.result == "recovered"


@pytest.mark.parametrize("call", ["initialize_if_absent", "write_if_unchanged"])
def test_a_caller_that_is_cancelled_while_the_store_is_asked_leaves_no_run_that_looks_alive(define, store, call) -> None:
    """The claim, the step: whatever the call in flight does is waited for, and then the run is marked failed."""

    def begin(event: StartEvent, state: WorkflowState) -> Next:
        return Next()

    def end(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent("end")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(define(begin, end).aio.run())
        cancelled, gone = threading.Event(), threading.Event()
        task.add_done_callback(lambda _: gone.set())

        def cancel(made: Any) -> None:
            if made.name == call and not cancelled.is_set():
                loop.call_soon_threadsafe(lambda: (task.cancel(), cancelled.set()))
                assert cancelled.wait(PATIENCE)
                assert not gone.wait(A_MOMENT), "the caller did not wait for the store"

        store.before = cancel
        with pytest.raises(asyncio.CancelledError):
            await task
        store.before = lambda made: None

    asyncio.run(main())
    assert define().inspect().status is WorkflowStatus.FAILED
    assert define(begin, end).run().execution.result == "end"


@pytest.mark.parametrize("waits", [True, False])
def test_a_caller_that_is_cancelled_while_the_run_settles_does_not_unsettle_it(define, store, waits) -> None:
    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        if waits:
            await_event("go")
        return StopEvent("end")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(define(work, retain_completion=True).aio.run())
        cancelled, gone = threading.Event(), threading.Event()
        task.add_done_callback(lambda _: gone.set())

        def cancel(made: Any) -> None:
            if made.name == "write_if_unchanged":
                loop.call_soon_threadsafe(lambda: (task.cancel(), cancelled.set()))
                assert cancelled.wait(PATIENCE)
                assert not gone.wait(A_MOMENT), "the caller did not wait for the store"

        store.before = cancel
        with pytest.raises(asyncio.CancelledError):
            await task
        store.before = lambda made: None

    asyncio.run(main())
    settled = WorkflowStatus.SUSPENDED if waits else WorkflowStatus.COMPLETED
    assert define().inspect().status is settled
    assert len(store.writes) == 2


def test_a_refused_caller_that_is_cancelled_leaves_the_run_of_another_alone(define, store, process_death) -> None:
    """A run that is executing elsewhere is not marked failed by whoever asked for it in vain."""

    def work(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    store.die_at(1, "before")
    with pytest.raises(process_death):
        define(work, lease_timeout=60).run()
    store.before = lambda made: None
    before = store.load("w")
    for request in (None, ExecutionRequest.resume(), ExecutionRequest.start(run_id="r")):
        with pytest.raises(WorkflowRefusedError):
            define(work).run(request)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(define(work).aio.run())
        cancelled = threading.Event()

        def cancel(made: Any) -> None:
            loop.call_soon_threadsafe(lambda: (task.cancel(), cancelled.set()))
            assert cancelled.wait(PATIENCE)

        store.after = cancel
        with pytest.raises((asyncio.CancelledError, WorkflowRefusedError)):
            await task
        store.after = lambda made: None

    asyncio.run(main())
    assert store.load("w") == before
