"""A long run keeps few records: every 256 settled steps become one."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from persistence import InMemoryPersistence, Persistence
from workflow import (
    Event,
    ExecutionRequest,
    Node,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    memoize,
    recall_memo,
)
from workflow.path import FOLD_AFTER


class Step(Event):
    number: int = 0


class HaltError(Exception):
    """Raised by a node where the test wants to look at the records."""


@pytest.fixture
def inner() -> Persistence:
    """Return a store in memory: most of this is not a matter of the store, and a fold takes many steps."""
    return InMemoryPersistence()


def record_keys(store: Any) -> list[str]:
    """What the run has in its partition besides control, ignition and the reason of a failure; without its run id."""
    keys = [key.partition("/")[2] for key in store.load("w") if not key.startswith("__")]
    return sorted(key for key in keys if key != "__failure")


@pytest.fixture
def loop(define):
    """Return what makes a workflow of so many steps, and of what each does with its number and the state."""

    def make(steps: int, work: Callable[[int, WorkflowState], Any] = lambda number, state: None, **options: Any) -> Workflow:
        def step(event: Step, state: WorkflowState) -> Step | StopEvent:
            work(event.number, state)
            following = event.number + 1
            return Step(number=following) if following < steps else StopEvent(state.all())

        step.__qualname__ = "step"
        return define(step, start_event=Step(), **options)

    return make


@pytest.fixture
def halted(loop):
    """Return what leaves a failed run with so many settled steps."""

    def make(settled: int, work: Callable[[int, WorkflowState], Any] = lambda number, state: None) -> None:
        def halt(number: int, state: WorkflowState) -> None:
            if number == settled:
                raise HaltError
            work(number, state)

        with pytest.raises(HaltError):
            loop(settled + 2, halt).run()

    return make


class CountingDeletes:
    """A store that writes down how many records each write deletes."""

    def __init__(self, inner: Persistence) -> None:
        self.inner = inner
        self.deleted: list[int] = []

    def write_if_unchanged(self, partition: str, key: str, expected: bytes, records: Any, delete: Any = (), *rest: Any) -> bool:
        gone = list(delete)
        self.deleted.append(len(gone))
        return self.inner.write_if_unchanged(partition, key, expected, records, gone, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


# --- what is kept -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settled", [1, 255, 256, 257, 511, 512, 513])
def test_what_is_kept_of_so_many_settled_steps(halted, store, settled) -> None:
    halted(settled)
    folded = settled // FOLD_AFTER * FOLD_AFTER
    base = ["__base"] if folded else []
    assert record_keys(store) == sorted([*base, *(f"step-{number}" for number in range(folded, settled))])
    if folded:
        run_id = json.loads(store.load("w")["__control"])["run"]
        stored = json.loads(store.load("w")[f"{run_id}/__base"])
        assert (stored["next"], stored["event"]["v"], stored["state"]["whole"]) == (folded, {"number": folded}, True)


@pytest.mark.parametrize("steps", [256, 257, 258, 600])
def test_folding_costs_no_write_of_its_own_and_no_read(loop, store, steps) -> None:
    """The last step settles the run, so a run of n steps has n - 1 settled ones."""
    assert loop(steps).run().execution.result == {}
    assert (len(store.calls), store.reads) == (steps + 1, [])


def test_a_long_run_folds_as_often_as_it_takes_and_ends_as_a_short_one(loop, store) -> None:
    def count(number: int, state: WorkflowState) -> None:
        state["count"] = state.get("count", 0) + 1

    assert loop(3 * FOLD_AFTER + 5, count, retain_completion=True).run().execution.result == {"count": 3 * FOLD_AFTER + 5}
    assert record_keys(store) == sorted(["__base", "__outcome", *(f"step-{3 * FOLD_AFTER + n}" for n in range(4))])


@pytest.mark.parametrize("kind", ["memory", "fakeredis"])
def test_memos_of_folded_steps_go_by_and_by_at_most_256_records_a_write(loop, empty_store, kind) -> None:
    inner = empty_store(kind)
    store = CountingDeletes(inner)

    def remember(number: int, state: WorkflowState) -> None:
        memoize("a", lambda: number)
        memoize("b/c::d", lambda: number)
        if number == FOLD_AFTER + 6 and state.execution.attempt == 1:
            raise HaltError
        state["sum"] = state.get("sum", 0) + number

    with pytest.raises(HaltError):
        loop(FOLD_AFTER + 8, remember, persistence=store).run()
    obsolete = (FOLD_AFTER - 1) + 2 * FOLD_AFTER
    assert max(store.deleted) == FOLD_AFTER
    assert sum(store.deleted) == obsolete
    kept = [f"step-{number}{memo}" for number in range(FOLD_AFTER, FOLD_AFTER + 7) for memo in ("", "::a", "::b/c::d")]
    assert record_keys(inner) == sorted({"__base", *kept} - {f"step-{FOLD_AFTER + 6}"})
    state = loop(FOLD_AFTER + 8, remember, persistence=store).run()
    assert state.execution.result == {"sum": sum(range(FOLD_AFTER + 8))}
    assert inner.load("w") == {}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_crash_left_undeleted_goes_with_the_next_steps(loop, store, inner, recording, process_death, moment) -> None:
    """Before the first write after the fold, or after it."""

    def remember(number: int, state: WorkflowState) -> None:
        if number > FOLD_AFTER + 5:
            raise HaltError
        for name in "abcd":
            memoize(name, lambda: number)

    fold = 1 + 5 * FOLD_AFTER - 1
    store.die_at(fold + 1, moment)
    with pytest.raises(process_death):
        loop(1000, remember).run()
    left = [key for key in record_keys(inner) if key.startswith("step-")]
    assert len(left) >= 4 * FOLD_AFTER - FOLD_AFTER - 1
    with pytest.raises(HaltError):
        loop(1000, remember, persistence=recording(inner)).run(ExecutionRequest.resume())
    assert {int(key.partition("::")[0].removeprefix("step-")) for key in record_keys(inner) if key != "__base"} == set(
        range(FOLD_AFTER, FOLD_AFTER + 6)
    )


# --- what comes back --------------------------------------------------------------------------------------------------------


def change(number: int, state: WorkflowState) -> None:
    """A change of every kind: of a value, of a nested one, of the keys."""
    state["last"] = number
    state["sum"] = state.get("sum", 0) + number
    nested = state.get("nested", [])
    if number % 100 == 0:
        nested.append(number)
    state["nested"] = nested
    state[f"key {number % 5}"] = number
    state.delete(f"key {(number + 2) % 5}")


def changed(steps: int) -> dict[str, Any]:
    """What so many steps leave."""
    state = WorkflowState()
    for number in range(steps):
        change(number, state)
    return state.all()


@pytest.mark.parametrize("settled", [255, 256, 257, 300, 512, 700])
def test_the_state_comes_back_from_base_and_changes_in_another_process(loop, halted, store, inner, recording, settled) -> None:
    halted(settled, change)
    ran: list[int] = []

    def work(number: int, state: WorkflowState) -> None:
        ran.append(number)
        change(number, state)

    other = recording(inner)
    state = loop(settled + 3, work, persistence=other).run(ExecutionRequest.resume())
    assert state.execution.result == changed(settled + 3)
    assert ran == [settled, settled + 1, settled + 2]
    assert (len(other.reads), state.execution.attempt) == (1, 2)


def test_behind_a_base_only_what_changes_is_recorded(loop, store) -> None:
    def work(number: int, state: WorkflowState) -> None:
        if number == 0:
            state["large"] = "x" * 10_000
        state["small"] = number

    loop(FOLD_AFTER + 10, work).run()
    sizes = [sum(map(len, call.records.values())) for call in store.writes[:-1]]
    assert [number for number, size in enumerate(sizes) if size > 10_000] == [1, FOLD_AFTER]
    assert max(sizes[FOLD_AFTER + 1 :]) < 1_000


def test_a_resumed_run_too_records_only_what_changes_behind_its_base(loop, halted, store) -> None:
    halted(FOLD_AFTER + 3, lambda number, state: state.set("large", "x" * 10_000))
    store.forget()
    loop(FOLD_AFTER + 10, lambda number, state: state.set("small", number)).run()
    assert max(sum(map(len, call.records.values())) for call in store.writes[:-1]) < 1_000


@pytest.mark.parametrize("waits_in", [254, 255, 256, 257])
def test_waits_and_memos_around_a_fold(loop, store, inner, waits_in) -> None:
    made: list[int] = []

    def work(number: int, state: WorkflowState) -> None:
        if number < waits_in:
            return
        if number == waits_in:
            memoize("before", lambda: made.append(number))
            state["first"] = await_event("first")
            memoize("between", lambda: made.append(-number))
            state["second"] = await_event("second")
        if number == waits_in + 3:
            assert recall_memo("before") is None
            state["third"] = await_event("third")

    options = {"retain_completion": True}
    assert loop(300, work, **options).run().is_interrupted()
    assert loop(300, work, **options).run(ExecutionRequest.signal("first", 1)).is_interrupted()
    assert loop(300, work, **options).run(ExecutionRequest.signal("second", 2)).interrupt_request.event_name == "third"
    state = loop(300, work, **options).run(ExecutionRequest.signal("third", 3))
    assert state.execution.result == {"first": 1, "second": 2, "third": 3}
    assert made == [waits_in, -waits_in]
    assert state.execution.attempt == 4


def test_a_suspended_run_behind_a_base_shows_its_state_without_running_anything(loop, store) -> None:
    def work(number: int, state: WorkflowState) -> None:
        state["last"] = number
        if number == FOLD_AFTER:
            await_event("go")

    loop(400, work).run()
    store.forget()
    polled = loop(400, work).run(ExecutionRequest.resume())
    assert (polled["last"], polled.is_interrupted(), store.writes) == (FOLD_AFTER, True, [])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_dies_around_the_folding_write_loses_and_repeats_nothing(
    loop, store, inner, recording, process_death, moment
) -> None:
    ran: list[int] = []

    def work(number: int, state: WorkflowState) -> None:
        ran.append(number)
        change(number, state)

    store.die_at(FOLD_AFTER, moment)
    with pytest.raises(process_death):
        loop(400, work).run()
    state = loop(400, work, persistence=recording(inner)).run(ExecutionRequest.resume())
    assert state.execution.result == changed(400)
    again = [FOLD_AFTER - 1] if moment == "before" else []
    assert ran == sorted([*range(400), *again])


def test_a_lost_reply_of_the_folding_write_fails_the_run_which_goes_on_from_there(loop, store, inner, recording) -> None:
    store.lose_reply_of(FOLD_AFTER)
    with pytest.raises(Exception, match="the reply was lost"):
        loop(400, change).run()
    assert loop(400, change, persistence=recording(inner)).run(ExecutionRequest.resume()).execution.result == changed(400)


def test_c199_the_budget_counts_folded_steps(loop) -> None:
    budget = FOLD_AFTER + 40
    assert loop(budget, max_steps=budget).run().execution.status is WorkflowStatus.COMPLETED
    with pytest.raises(WorkflowError, match=f"budget of {budget} steps"):
        loop(budget + 1, max_steps=budget).run()
    with pytest.raises(WorkflowError, match=f"budget of {budget} steps"):
        loop(budget + 1, max_steps=budget).run()
    assert loop(budget + 1, max_steps=budget + 1).run().execution.status is WorkflowStatus.COMPLETED


def test_names_that_look_like_numbers_and_nodes_in_turn_fold_and_come_back(define, store) -> None:
    class Ping(Event):
        number: int = 0

    class Pong(Event):
        number: int

    class First(Node):
        step_name = "step-1"

        def __call__(self, event: Ping, state: WorkflowState) -> Pong:
            return Pong(number=event.number + 1)

    class Second(Node):
        step_name = "12-0-7"

        def __call__(self, event: Pong, state: WorkflowState) -> Ping | StopEvent:
            if event.number == 281 and not halted:
                halted.append(1)
                raise HaltError
            return Ping(number=event.number + 1) if event.number < 299 else StopEvent(event.number)

    halted: list[int] = []
    with pytest.raises(HaltError):
        define(First(), Second(), start_event=Ping()).run()
    assert len([key for key in record_keys(store) if key != "__base"]) == 281 - FOLD_AFTER
    assert define(First(), Second(), start_event=Ping()).run().execution.result == 299


def test_cancelling_abandoning_and_recovering_know_nothing_of_folding(loop, halted, store) -> None:
    halted(300)
    assert loop(1).inspect().status is WorkflowStatus.FAILED
    assert loop(1).cancel() is True
    assert store.load("w") == {}
    halted(300)
    assert loop(1).run(ExecutionRequest.start()).execution.attempt == 1
    assert store.load("w") == {}
