"""Which run a start makes, meets, recovers or supersedes: identity and admission (A, B)."""

import datetime as dt
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    RefusalReason,
    RunInFlightError,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
)


class Begun(Event):
    number: int = 0


class Halfway(Event):
    pass


class Nearly(Event):
    pass


@pytest.fixture
def trace() -> list[Any]:
    """Return what the nodes have done."""
    return []


@pytest.fixture
def chain(define, trace, fail_once):
    """Return what makes a workflow of three steps; the steps named in `failing` fail at their first call."""

    def make(failing: tuple[str, ...] = (), waiting: bool = False, **options: Any) -> Workflow:
        def note(step: str, state: WorkflowState) -> None:
            if step in failing:
                fail_once(step)
            trace.append(step)
            state.set("done", [*state.get("done", []), step])

        def one(event: Begun, state: WorkflowState) -> Halfway:
            note("one", state)
            state.set("number", event.number)
            return Halfway()

        def two(event: Halfway, state: WorkflowState) -> Nearly:
            note("two", state)
            return Nearly()

        def three(event: Nearly, state: WorkflowState) -> StopEvent:
            if waiting:
                await_event("go")
            note("three", state)
            return StopEvent(state.get("number"))

        return define(one, two, three, start_event=Begun(), **options)

    return make


def abandoned_midway(chain, store, process_death, **options: Any) -> str:
    """Leave a run whose process died in its second step, and return its run id."""
    store.die_at(2, "before")
    with pytest.raises(process_death):
        chain(**options).run()
    store.before = lambda call: None
    return chain(**options).inspect().run_id


# --- identity ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow_id", ["", "x" * 256, "a\x00b", "a\nb", "a\x7f", "id\n", "a\ud800", "__x"])
def test_c007_an_invalid_workflow_id_is_refused_before_the_store_is_touched(chain, store, workflow_id) -> None:
    bound = chain(workflow_id=workflow_id)
    engine = WorkflowEngine(store)
    calls = [
        bound.run,
        bound.inspect,
        bound.abandon,
        bound.ignite,
        lambda: bound.acknowledge("r"),
        lambda: engine.inspect(workflow_id),
        lambda: engine.abandon(workflow_id),
        lambda: engine.acknowledge(workflow_id, "r"),
    ]
    for call in calls:
        with pytest.raises(WorkflowError, match="invalid workflow ID"):
            call()
    assert store.calls == []


@pytest.mark.parametrize("workflow_id", ["_private", "order__42", "tenant/order 42", "\N{SNOWMAN}" * 255])
def test_c008_unusual_workflow_ids_are_accepted(chain, workflow_id) -> None:
    assert chain(workflow_id=workflow_id).run().execution.workflow_id == workflow_id


@pytest.mark.parametrize("run_id", ["a", "A-1_b", "x" * 128])
def test_c009_a_caller_may_reserve_a_run_id(chain, run_id) -> None:
    assert chain().run(ExecutionRequest.start(run_id=run_id)).execution.run_id == run_id


@pytest.mark.parametrize("run_id", ["", "-a", "_a", "a b", "a/b", "x" * 129, "a\n"])
def test_c009_a_run_id_of_another_form_is_refused_when_the_request_is_made(run_id) -> None:
    with pytest.raises(WorkflowError, match="invalid run ID"):
        ExecutionRequest.start(run_id=run_id)


def test_c002_an_unbound_definition_raises_at_each_call_and_touches_nothing(chain, store) -> None:
    unbound = chain(workflow_id=None)
    for call in (unbound.run, unbound.inspect, unbound.abandon, unbound.ignite, lambda: unbound.acknowledge("r")):
        with pytest.raises(WorkflowError, match="for_id"):
            call()
    assert store.calls == []


def test_c004_c005_an_id_declared_by_the_class_wins_and_a_disagreement_is_an_error(store) -> None:
    def end(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(state.execution.workflow_id)

    class Order(Workflow):
        def __init__(self, number: int, **options: Any) -> None:
            super().__init__(**options)
            self.number = number

        def declared_id(self) -> str:
            return f"order:{self.number}"

    order = Order(7, nodes=[end], persistence=store, retain_completion=True)
    assert order.run().execution.result == "order:7"
    assert "__control" in store.load("order:7")
    assert order.for_id("order:7").workflow_id == "order:7"
    with pytest.raises(WorkflowError, match="misidentified run"):
        order.for_id("order:8").run()


def test_c010_generated_run_ids_differ_and_begin_with_run(chain) -> None:
    first, second = chain().run().execution.run_id, chain().run().execution.run_id
    assert first != second
    assert first.startswith("run_")
    assert second.startswith("run_")


def test_c011_a_returned_state_belongs_to_its_run_alone(chain) -> None:
    definition = chain()
    first = definition.run()
    execution, data = first.execution, first.all()
    definition.run(ExecutionRequest.start(Begun(number=5)))
    assert (first.execution, first.all()) == (execution, data)


def test_for_id_and_reconfigure_leave_the_receiver_as_it_was(chain) -> None:
    definition = chain()
    other = definition.for_id("other")
    assert (definition.workflow_id, other.workflow_id) == ("w", "other")
    assert definition.reconfigure(max_steps=1).max_steps == 1
    assert definition.max_steps is None
    with pytest.raises(WorkflowError, match="no option 'max_step'"):
        definition.reconfigure(max_step=1)


# --- fresh runs -------------------------------------------------------------------------------------------------------------


def test_c012_control_and_ignition_are_created_in_one_write_before_any_node_runs(chain, store, trace) -> None:
    at_first_write: list[Any] = []
    store.before = lambda call: at_first_write.append(list(trace)) if call.number == 0 else None
    assert chain().run().execution.attempt == 1
    assert set(store.calls[0].records) == {"__control", "__ignition"}
    assert at_first_write == [[]]


def test_c013_a_linear_run_returns_its_state_and_leaves_nothing_behind(chain, store, trace) -> None:
    state = chain().run(ExecutionRequest.start(Begun(number=3)))
    assert trace == ["one", "two", "three"]
    assert (state.execution.status, state.execution.result) == (WorkflowStatus.COMPLETED, 3)
    assert state.get("done") == trace
    assert store.load("w") == {}
    assert store.find() == []


def test_c040_one_request_serves_two_workflow_ids_with_events_of_their_own(define) -> None:
    seen: list[Any] = []

    class Listed(Event):
        items: list[int]

    def keep(event: Listed, state: WorkflowState) -> StopEvent:
        event.items.append(4)
        seen.append(event.items)
        return StopEvent()

    given = [1, 2, 3]
    request = ExecutionRequest.start(Listed(items=given))
    given.append(9)
    define(keep).run(request)
    define(keep, workflow_id="v").run(request)
    assert seen == [[1, 2, 3, 4], [1, 2, 3, 4]]
    assert request.event.items == [1, 2, 3]  # pyright: ignore


def test_a_tag_is_shown_with_the_run_and_in_listings(chain, store) -> None:
    state = chain(waiting=True).run(ExecutionRequest.start(tag="blue"))
    assert state.execution.tag == "blue"
    assert chain().inspect().tag == "blue"
    assert [entry.partition for entry in store.find(tag="blue")] == ["w"]


# --- meeting a run ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start", [None, ExecutionRequest.start(), ExecutionRequest.start(run_id="r"), ExecutionRequest.start(run_id="q")]
)
def test_c015_a_suspended_run_refuses_every_start(chain, store, start) -> None:
    chain(waiting=True).run(ExecutionRequest.start(run_id="r"))
    before = store.load("w")
    with pytest.raises(RunInFlightError) as refused:
        chain(waiting=True).run(start)
    assert refused.value.interrupt.event_name == "go"
    assert (refused.value.run_id, refused.value.status) == ("r", WorkflowStatus.SUSPENDED)
    assert store.load("w") == before


def test_c019_a_plain_run_recovers_a_failed_one_with_its_finished_steps(chain, trace, trip) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run()
    failed = chain().inspect()
    assert (failed.status, failed.execution_attempt) == (WorkflowStatus.FAILED, 1)
    state = chain(failing=("two",)).run()
    assert trace == ["one", "two", "three"]
    assert (state.execution.run_id, state.execution.attempt) == (failed.run_id, 2)
    assert state.get("done") == ["one", "two", "three"]


def test_c020_an_explicit_start_sweeps_a_failed_run(chain, store, trace, trip) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run(ExecutionRequest.start(Begun(number=1)))
    old = chain().inspect().run_id
    state = chain(failing=("two",), waiting=True).run(ExecutionRequest.start(Begun(number=2)))
    assert state.execution.run_id != old
    assert state.execution.attempt == 1
    assert state.get("number") == 2
    assert trace == ["one", "one", "two"]
    assert [key for key in store.load("w") if key.startswith(old)] == []


def test_c021_a_recovery_uses_the_recorded_start_event(chain, trip) -> None:
    reserved = {"run_id": "r", "recover_failed": True}
    with pytest.raises(trip):
        chain(failing=("one",)).run(ExecutionRequest.start(Begun(number=1), **reserved))
    state = chain(failing=("one",)).run(ExecutionRequest.start(Begun(number=2), **reserved))
    assert (state.get("number"), state.execution.run_id, state.execution.attempt) == (1, "r", 2)


def test_c022_a_plain_run_supersedes_a_run_whose_lease_has_ended(chain, store, clock, trace, process_death) -> None:
    old = abandoned_midway(chain, store, process_death, lease_timeout=60)
    clock.advance(60)
    state = chain(lease_timeout=60).run()
    assert state.execution.run_id != old
    assert state.execution.attempt == 1
    assert trace == ["one", "two", "one", "two", "three"]


def test_c023_an_inputless_resume_takes_over_a_run_whose_lease_has_ended(chain, store, clock, trace, process_death) -> None:
    old = abandoned_midway(chain, store, process_death, lease_timeout=60)
    clock.advance(60)
    state = chain(lease_timeout=60).run(ExecutionRequest.resume())
    assert (state.execution.run_id, state.execution.attempt) == (old, 2)
    assert trace == ["one", "two", "two", "three"]
    assert state.get("done") == ["one", "two", "three"]


def test_c024_a_lease_that_ends_now_has_ended(chain, store, clock, process_death) -> None:
    abandoned_midway(chain, store, process_death, lease_timeout=60)
    clock.advance(59)
    with pytest.raises(WorkflowRefusedError) as refused:
        chain().run(ExecutionRequest.resume())
    assert refused.value.reason is RefusalReason.EXECUTING
    clock.advance(1)
    assert chain().run(ExecutionRequest.resume()).execution.attempt == 2


def test_c025_only_an_inputless_resume_takes_over_a_run_without_a_lease(chain, store, clock, process_death) -> None:
    abandoned_midway(chain, store, process_death)
    clock.advance(10**6)
    with pytest.raises(RunInFlightError, match="without a lease"):
        chain().run()
    assert chain().run(ExecutionRequest.resume()).execution.attempt == 2


def test_c026_a_run_recovered_by_another_between_look_and_claim_is_never_executed_twice(
    chain, store, trace, trip, inner
) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run()
    store.forget()
    rival = chain(failing=("two",), persistence=inner, waiting=True)
    store.after = lambda call: rival.run() if call.number == 1 else None
    with pytest.raises(WorkflowRefusedError) as refused:
        chain(waiting=True).run()
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    assert trace == ["one", "two"]


def test_c026_a_claim_that_loses_its_race_is_stale(chain, store, trip, inner) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run()
    store.forget()
    rival = chain(persistence=inner, waiting=True)
    store.before = lambda call: rival.run() if call.name == "write_if_unchanged" and call.number == 3 else None
    with pytest.raises(WorkflowRefusedError) as refused:
        chain(waiting=True).run()
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT


def test_c026_a_claim_that_loses_to_a_replacement_names_the_new_run(chain, store, trip, inner) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run()
    store.forget()
    rival = chain(persistence=inner, waiting=True)
    replace = ExecutionRequest.start(run_id="r")

    def supersede(call) -> None:
        if call.name == "write_if_unchanged":
            store.before = lambda call: None
            rival.abandon()
            rival.run(replace)

    store.before = supersede
    with pytest.raises(WorkflowRefusedError) as refused:
        chain(waiting=True).run()
    assert refused.value.reason is RefusalReason.STALE_RUN
    assert refused.value.actual_run_id == "r"  # pyright: ignore


def test_c027_a_sweep_that_loses_to_a_claim_leaves_the_claimant_alone(chain, store, trip, inner) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run()
    rival = chain(persistence=inner, waiting=True)
    store.before = lambda call: rival.run() if call.name == "delete_if_unchanged" else None
    with pytest.raises(RunInFlightError):
        chain().run(ExecutionRequest.start())
    store.before = lambda call: None
    assert chain().inspect().execution_attempt == 2


def test_c028_an_unreserved_start_tries_once_more_when_the_run_in_the_way_has_gone(chain, store, inner, trace) -> None:
    rival = chain(persistence=inner, waiting=True)
    rival.run()
    store.before = lambda call: rival.abandon() if call.name == "load" else None
    assert chain().run(ExecutionRequest.start()).execution.attempt == 1
    assert trace == ["one", "two", "one", "two", "three"]


def test_c029_a_reserved_start_that_finds_the_run_gone_is_a_conflict(chain, store, inner) -> None:
    rival = chain(persistence=inner, waiting=True)
    rival.run()
    store.before = lambda call: rival.abandon() if call.name == "load" else None
    with pytest.raises(WorkflowRefusedError) as refused:
        chain().run(ExecutionRequest.start(run_id="r"))
    assert refused.value.reason is RefusalReason.CONFLICT


def test_c031_a_repeated_reserved_start_is_refused_in_every_state_of_its_run(chain, store, clock, trip, process_death) -> None:
    mine = ExecutionRequest.start(run_id="r")

    def refused() -> None:
        with pytest.raises(RunInFlightError, match="your run 'r'"):
            chain(waiting=True).run(mine)

    chain(waiting=True).run(mine)
    refused()
    chain().abandon()
    with pytest.raises(trip):
        chain(failing=("one",)).run(mine)
    refused()
    chain().abandon()
    chain(retain_completion=True).run(mine)
    refused()


def test_c034_an_own_run_that_is_executing_is_refused_with_and_without_a_lease(chain, store, process_death) -> None:
    for lease in (60, None):
        store.forget()
        store.die_at(2, "before")
        with pytest.raises(process_death):
            chain(lease_timeout=lease).run(ExecutionRequest.start(run_id="r"))
        store.before = lambda call: None
        with pytest.raises(RunInFlightError):
            chain(lease_timeout=lease).run(ExecutionRequest.start(run_id="r", recover_failed=True))
        store.delete_if_unchanged("w", "__control", store.get("w", "__control"))


def test_c035_a_reserved_start_never_sweeps_another_run(chain, store, clock, trip, process_death) -> None:
    def untouched() -> None:
        before = store.load("w")
        for recover in (False, True):
            with pytest.raises(RunInFlightError) as refused:
                chain().run(ExecutionRequest.start(run_id="q", recover_failed=recover))
            assert refused.value.run_id == run_id
        assert store.load("w") == before

    with pytest.raises(trip):
        chain(failing=("two",)).run()
    run_id = chain().inspect().run_id
    untouched()
    chain().abandon()
    store.forget()
    run_id = abandoned_midway(chain, store, process_death, lease_timeout=60)
    clock.advance(60)
    untouched()


def test_c036_a_reserved_start_runs_again_after_a_clean_completion(chain, trace) -> None:
    for _ in range(2):
        chain().run(ExecutionRequest.start(run_id="r"))
    assert trace == ["one", "two", "three"] * 2


def test_c037_a_retained_completion_refuses_every_start(chain, trace) -> None:
    chain(retain_completion=True).run(ExecutionRequest.start(run_id="r"))
    starts = [
        None,
        ExecutionRequest.start(),
        ExecutionRequest.start(run_id="r", recover_failed=True),
        ExecutionRequest.start(run_id="q", recover_failed=True),
    ]
    for start in starts:
        with pytest.raises(RunInFlightError, match="acknowledge"):
            chain().run(start)
    assert trace == ["one", "two", "three"]


# --- igniting ---------------------------------------------------------------------------------------------------------------


def test_igniting_records_a_start_and_executes_nothing(chain, store, clock, trace) -> None:
    run_id = chain().ignite(Begun(number=3), run_id="r", tag="blue")
    assert run_id == "r"
    assert trace == []
    assert [set(call.records) for call in store.calls] == [{"__control", "__ignition"}]
    snapshot = chain().inspect()
    assert (snapshot.status, snapshot.execution_attempt, snapshot.lease_expires_at) == (WorkflowStatus.PENDING, 0, None)
    assert (snapshot.start_event, snapshot.tag) == (Begun(number=3), "blue")
    entry = store.entry("w")
    assert (entry.status, entry.due) == ("pending", clock.now().timestamp() + 5)
    assert chain().run(ExecutionRequest.resume(expected_run_id="r")).get("number") == 3


def test_continuing_a_pending_run_is_its_first_attempt(chain) -> None:
    chain(lease_timeout=60).ignite()
    assert chain(lease_timeout=60).run(ExecutionRequest.resume(expected_execution_attempt=0)).execution.attempt == 1


def test_a_pending_run_refuses_every_start_but_its_own_recovering_one(chain, store, clock) -> None:
    chain().ignite(Begun(number=3), run_id="r")
    clock.advance(10**6)
    starts = [None, ExecutionRequest.start(), ExecutionRequest.start(run_id="r"), ExecutionRequest.start(run_id="q")]
    for start in starts:
        with pytest.raises(RunInFlightError):
            chain().run(start)
        with pytest.raises(RunInFlightError):
            chain().ignite(run_id=start.run_id if start else None)
    state = chain().run(ExecutionRequest.start(run_id="r", recover_failed=True))
    assert (state.execution.attempt, state.get("number")) == (1, 3)


def test_a_pending_run_can_be_abandoned(chain, store) -> None:
    chain().ignite()
    assert chain().abandon() is True
    assert store.load("w") == {}
    assert store.due(float(2**40)) == []


def test_igniting_supersedes_a_dead_run_unless_it_reserves_an_id(chain, trip) -> None:
    with pytest.raises(trip):
        chain(failing=("two",)).run()
    with pytest.raises(RunInFlightError):
        chain().ignite(run_id="r")
    old = chain().inspect().run_id
    assert chain().ignite() != old
    assert chain().inspect().status is WorkflowStatus.PENDING


def test_a_run_taken_over_from_pending_is_claimed_by_one_of_two(chain, store, inner, trace) -> None:
    chain().ignite()
    store.forget()
    rival = chain(persistence=inner, waiting=True)
    store.after = lambda call: rival.run(ExecutionRequest.resume()) if call.number == 0 else None
    with pytest.raises(WorkflowRefusedError) as refused:
        chain().run(ExecutionRequest.resume())
    assert refused.value.reason is RefusalReason.STALE_ATTEMPT
    assert trace == ["one", "two"]


def test_the_lease_is_shown_as_an_aware_time(chain, store, clock, process_death) -> None:
    abandoned_midway(chain, store, process_death, lease_timeout=60)
    assert chain().inspect().lease_expires_at == clock.now() + dt.timedelta(seconds=60)
    with pytest.raises(RunInFlightError) as refused:
        chain().run()
    assert refused.value.lease_expires_at == clock.now() + dt.timedelta(seconds=60)
