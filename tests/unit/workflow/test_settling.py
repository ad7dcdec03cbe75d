"""Looking at runs, discarding them, keeping and acknowledging their outcomes (E)."""

import copy
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    JsonSerializer,
    PickleSerializer,
    RefusalReason,
    StopEvent,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
)


class Listed(Event):
    items: list[int]


class Next(Event):
    pass


@pytest.fixture
def asking(define, fail_once):
    """Return what makes a workflow of two steps: the second waits, then may fail once."""

    def make(waiting: bool = True, failing: bool = False, **options: Any):
        def first(event: Listed, state: WorkflowState) -> Next:
            state["items"] = event.items
            return Next()

        def second(event: Next, state: WorkflowState) -> StopEvent:
            if failing:
                fail_once("second")
            answer = await_event("go") if waiting else None
            state["answer"] = answer
            return StopEvent({"answer": answer})

        return define(first, second, start_event=Listed(items=[1]), **options)

    return make


def refused(call) -> RefusalReason:
    """The reason of a refusal."""
    with pytest.raises(WorkflowRefusedError) as caught:
        call()
    return caught.value.reason


def died(asking, store, process_death, **options: Any) -> None:
    """Leave a run whose process died in its first step."""
    store.forget()
    store.die_at(1, "before")
    with pytest.raises(process_death):
        asking(**options).run()
    store.before = lambda call: None


def test_c077_a_snapshot_is_a_copy(asking) -> None:
    asking().run()
    asking().inspect().start_event.items.append(9)
    assert asking().inspect().start_event == Listed(items=[1])
    assert asking().run(ExecutionRequest.resume(1))["items"] == [1]


def test_c080_inspecting_writes_nothing_in_any_state(asking, store, trip) -> None:
    assert asking().inspect() is None
    asking().run()
    asking().inspect()
    assert [call.name for call in store.calls[-1:]] == ["load"]
    asking().abandon()
    with pytest.raises(trip):
        asking(failing=True).run()
    store.forget()
    snapshot = asking().inspect()
    assert (snapshot.status, snapshot.failure.error, snapshot.failure.message) == (WorkflowStatus.FAILED, "TripError", "second")
    assert store.writes == []


def test_c081_abandoning_nothing(asking) -> None:
    assert asking().abandon() is False
    assert refused(lambda: asking().abandon("r")) is RefusalReason.STALE_RUN


@pytest.mark.parametrize("state", ["suspended", "failed", "expired", "no lease", "pending"])
def test_c082_a_run_that_nobody_executes_can_be_abandoned(asking, store, clock, trip, process_death, state) -> None:
    match state:
        case "suspended":
            asking().run()
        case "failed":
            with pytest.raises(trip):
                asking(failing=True).run()
        case "expired":
            died(asking, store, process_death, lease_timeout=60)
            clock.advance(60)
        case "no lease":
            died(asking, store, process_death)
        case _:
            asking().ignite()
    assert asking().abandon() is True
    assert store.load("w") == {}
    assert store.find() == []
    assert asking(waiting=False).run().execution.attempt == 1


def test_c083_abandoning_another_run_or_attempt_leaves_it(asking, store) -> None:
    run_id = asking().run().execution.run_id
    before = store.load("w")
    assert refused(lambda: asking().abandon("r")) is RefusalReason.STALE_RUN
    assert refused(lambda: asking().abandon(run_id, 2)) is RefusalReason.STALE_ATTEMPT
    assert store.load("w") == before
    assert asking().abandon(run_id, 1) is True


def test_c084_a_live_or_a_retained_run_is_not_abandoned(asking, store, clock, process_death) -> None:
    died(asking, store, process_death, lease_timeout=60)
    clock.advance(59)
    assert refused(asking().abandon) is RefusalReason.EXECUTING
    clock.advance(1)
    assert asking().abandon()
    asking(waiting=False, retain_completion=True).run()
    assert refused(asking().abandon) is RefusalReason.COMPLETED


def test_c085_a_delete_that_loses_its_race_is_a_conflict(asking, store, inner) -> None:
    asking().run()
    rival = asking(persistence=inner, retain_completion=True)
    store.after = lambda call: rival.run(ExecutionRequest.resume(1)) if call.name == "load" else None
    assert refused(asking().abandon) is RefusalReason.CONFLICT
    store.after = lambda call: None
    assert asking().inspect().status is WorkflowStatus.COMPLETED


def test_c087_only_a_completed_run_is_acknowledged(asking, store, trip, process_death) -> None:
    assert refused(lambda: asking().acknowledge("r")) is RefusalReason.STALE_RUN
    asking().run(ExecutionRequest.start(run_id="r"))
    assert refused(lambda: asking().acknowledge("r")) is RefusalReason.NOT_COMPLETED
    assert refused(lambda: asking().acknowledge("q")) is RefusalReason.STALE_RUN
    asking().abandon()
    with pytest.raises(trip):
        asking(failing=True).run(ExecutionRequest.start(run_id="r"))
    assert refused(lambda: asking().acknowledge("r")) is RefusalReason.NOT_COMPLETED
    asking().abandon()
    died(asking, store, process_death)
    run_id = asking().inspect().run_id
    assert refused(lambda: asking().acknowledge(run_id)) is RefusalReason.NOT_COMPLETED


def test_c087_an_acknowledgement_frees_the_workflow_id(asking, store) -> None:
    run_id = asking(waiting=False, retain_completion=True).run().execution.run_id
    asking().acknowledge(run_id)
    assert store.load("w") == {}
    assert refused(lambda: asking().acknowledge(run_id)) is RefusalReason.STALE_RUN
    assert asking(waiting=False).run().execution.status is WorkflowStatus.COMPLETED


def test_c089_one_write_holds_outcome_and_completion(asking, store) -> None:
    options = {"waiting": False, "retain_completion": True}
    final = asking(**options).run()
    last = store.writes[-1]
    assert set(last.records) == {"__control", f"{final.execution.run_id}/__outcome"}
    assert b'"status":"completed"' in last.records["__control"]
    again = asking(**options).run(ExecutionRequest.resume())
    assert again == final
    assert again.execution == final.execution


def test_c090_the_segment_that_completes_decides_on_retention(asking, store) -> None:
    asking().run()
    asking(retain_completion=True).run(ExecutionRequest.resume(1))
    assert asking().inspect().status is WorkflowStatus.COMPLETED
    asking().acknowledge(asking().inspect().run_id)
    asking(retain_completion=True).run()
    asking().run(ExecutionRequest.resume(1))
    assert asking().inspect() is None


def test_retain_for_keeps_the_outcome_and_says_when_it_may_go(asking, store, clock) -> None:
    asking(waiting=False, retain_for=3600).run()
    assert asking().inspect().status is WorkflowStatus.COMPLETED
    assert store.entry("w").due == clock.now().timestamp() + 3600


@pytest.mark.parametrize("retain", [{"retain_completion": True}, {}])
def test_c115_a_returned_state_is_the_callers_own(asking, retain) -> None:
    options = {"waiting": False, **retain}
    definition = asking(**options)
    state = definition.run()
    kept = copy.deepcopy(state.all())
    state["items"].append(9)
    state["more"] = True
    if retain:
        assert definition.run(ExecutionRequest.resume()).all() == kept
        definition.acknowledge(state.execution.run_id)
    assert definition.run().all() == kept


def test_c092_an_engine_built_from_the_store_alone_manages_the_run(asking, store, clock) -> None:
    run_id = asking().run().execution.run_id
    engine = WorkflowEngine(store, clock=clock)
    snapshot = engine.inspect("w")
    assert snapshot is not None
    assert (snapshot.run_id, snapshot.status, snapshot.deferred_interrupts) == (run_id, WorkflowStatus.SUSPENDED, 0)
    assert snapshot.interrupt is not None
    assert snapshot.interrupt.to_json() == {"interruptId": 1, "type": "wait_for_event", "eventName": "go", "expiresAt": None}
    assert engine.abandon("w", run_id, 1) is True
    asking(waiting=False, retain_completion=True).run(ExecutionRequest.start(run_id="r"))
    engine.acknowledge("w", "r")
    assert engine.inspect("w") is None


@pytest.mark.parametrize(("writes", "reads"), [("json", "pickle"), ("pickle", "json")])
def test_c250_another_codec_is_an_error_and_never_an_absent_run(asking, store, clock, writes, reads) -> None:
    codecs = {"json": JsonSerializer(), "pickle": PickleSerializer()}
    asking(serializer=codecs[writes]).run()
    other = WorkflowEngine(store, codecs[reads], clock=clock)
    for call in (lambda: other.inspect("w"), lambda: other.abandon("w"), lambda: asking(serializer=codecs[reads]).run()):
        with pytest.raises(Exception, match="'w'") as caught:
            call()
        assert not isinstance(caught.value, WorkflowRefusedError)
    same = WorkflowEngine(store, codecs[writes], clock=clock)
    assert same.inspect("w") is not None
    assert asking(serializer=codecs[writes]).run(ExecutionRequest.resume(5)).execution.result == {"answer": 5}


def test_the_settling_verbs_reach_the_engine_through_the_workflow(asking) -> None:
    with pytest.raises(WorkflowError):
        asking(workflow_id=None).inspect()
