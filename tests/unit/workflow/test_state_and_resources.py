"""What a run knows and what it may use (N), and what a definition keeps to itself (F)."""

import threading
from typing import Any

import pytest
from pydantic import Field, ValidationError

from workflow import (
    Event,
    ExecutionRequest,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowError,
    WorkflowResources,
    WorkflowState,
    await_event,
)


class Next(Event):
    pass


class Order(WorkflowState):
    number: int = 0
    lines: list[str] = Field(default_factory=list)
    status: str = "open"


@pytest.fixture
def state() -> Order:
    """Return a state with a typed field and a further key set."""
    return Order(number=1, note="n", nothing=None)


def test_a_state_is_a_mapping_of_typed_fields_and_further_keys(state) -> None:
    assert state.all() == {"number": 1, "lines": [], "status": "open", "note": "n", "nothing": None}
    assert state.get("nothing", "default") is None
    assert state.get("missing", "default") == "default"
    assert state.only(["number", "missing", "note"]) == {"number": 1, "note": "n"}
    assert state.without(["lines", "status"]) == {"number": 1, "note": "n", "nothing": None}
    assert ("note" in state, "missing" in state, 5 in state) == (True, False, False)
    assert list(state) == list(state.all())
    state["number"] = 2
    state["more"] = 3
    assert (state.number, state["more"]) == (2, 3)
    del state["note"]
    state.delete("number")
    state.delete("missing")
    assert not state.has("note")
    assert state.number == 0
    with pytest.raises(KeyError):
        _ = state["note"]


def test_assignments_to_typed_fields_are_validated_by_every_way_in(state) -> None:
    for assign in (
        lambda: state.set("number", "x"),
        lambda: setattr(state, "number", "x"),
        lambda: state.__setitem__("number", "x"),
    ):
        with pytest.raises(ValidationError):
            assign()
    with pytest.raises((AttributeError, ValueError)):
        state.misspelt = 1
    with pytest.raises(AttributeError):
        _ = state.misspelt


@pytest.mark.filterwarnings("ignore:Field name")
def test_a_field_that_would_hide_a_method_is_refused_when_the_class_is_defined() -> None:
    for name in ("get", "all", "execution", "interrupt_request"):
        with pytest.raises((TypeError, NameError), match=name):
            type("Hiding", (WorkflowState,), {"__annotations__": {name: int}, "__module__": __name__})


def test_outside_a_run_there_is_no_execution(state) -> None:
    with pytest.raises(WorkflowError, match="no run"):
        _ = state.execution
    assert not state.is_interrupted()
    assert state.interrupt_request is None


def test_c224_each_run_gets_a_deep_copy_of_the_seed(define) -> None:
    seed = WorkflowState(nested={"list": [1]})

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        state["nested"]["list"].append(2)
        return StopEvent(state["nested"]["list"])

    definition = define(node, state=seed)
    assert [definition.run().execution.result for _ in range(2)] == [[1, 2], [1, 2]]
    assert seed["nested"] == {"list": [1]}


def test_c226_a_typed_state_is_itself_in_the_next_process(define) -> None:
    def first(event: StartEvent, state: Order) -> Next:
        state.lines = ["a"]
        state["extra"] = (1, 2)
        return Next()

    def second(event: Next, state: Order) -> StopEvent:
        await_event("go")
        state.lines.append("b")
        return StopEvent()

    suspended = define(first, second, state=Order()).run()
    shown = define(first, second, state=Order()).run(ExecutionRequest.resume())
    assert type(shown) is type(suspended) is Order
    assert shown == suspended
    final = define(first, second, state=Order()).run(ExecutionRequest.resume({}))
    assert (final.lines, final["extra"], final.status) == (["a", "b"], (1, 2), "open")


def test_a_states_own_status_is_not_the_runs(define) -> None:
    def node(event: StartEvent, state: Order) -> StopEvent:
        state.status = "paid"
        return StopEvent()

    final = define(node, state=Order()).run()
    assert (final.status, final.execution.status.value) == ("paid", "completed")


# --- resources --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def made() -> list[Any]:
    """Return the resources that were made."""
    return []


def test_c227_resources_are_made_once_for_each_segment_and_shared(define, made) -> None:
    def make() -> WorkflowResources:
        made.append(WorkflowResources({"lock": threading.Lock()}))
        return made[-1]

    used: list[Any] = []

    def first(event: StartEvent, state: WorkflowState, resources: WorkflowResources) -> Next:
        used.append(resources)
        return Next()

    def second(event: Next, state: WorkflowState, resources: WorkflowResources) -> StopEvent:
        used.append(resources)
        await_event("go")
        return StopEvent()

    definition = define(first, second, resources=make)
    definition.run()
    assert [resource is made[0] for resource in used] == [True, True]
    definition.run(ExecutionRequest.resume())
    assert len(made) == 1
    definition.run(ExecutionRequest.resume(1))
    assert len(made) == 2
    assert used[2] is made[1]


def test_c228_a_resource_is_never_stored(define, store) -> None:
    def node(event: StartEvent, state: WorkflowState, resources: WorkflowResources) -> StopEvent:
        await_event(resources.get("name"))
        return StopEvent()

    state = define(node, resources=WorkflowResources({"name": "go", "lock": threading.Lock()})).run()
    assert state.is_interrupted()
    assert not any(b"lock" in data for data in store.load("w").values())


def test_c230_a_factory_wins_over_the_hook_and_may_take_the_workflow_id(define, made) -> None:
    class Own(Workflow):
        def resources(self) -> WorkflowResources:
            made.append("hook")
            return WorkflowResources()

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    define(node, cls=Own).run()
    define(node, cls=Own, resources=lambda workflow_id: made.append(workflow_id) or WorkflowResources()).run()
    assert made == ["hook", "w"]


def test_a_missing_service_names_the_known_ones() -> None:
    with pytest.raises(KeyError, match="crm, mail"):
        WorkflowResources({"mail": 1, "crm": 2}).get("sms")


# --- the definition ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [0, -1, 0.5])
def test_c096_a_lease_below_a_second_is_refused_before_anything_is_written(define, store, lease) -> None:
    class Own(Workflow):
        lease_timeout = lease

    for definition in (define(lease_timeout=lease), define(cls=Own)):
        for call in (
            definition.run,
            definition.ignite,
            lambda definition=definition: definition.run(ExecutionRequest.resume()),
        ):
            with pytest.raises(WorkflowError, match="lease_timeout"):
                call()
    assert store.calls == []


def test_c097_an_argument_wins_over_the_class_even_when_it_is_none(define, store) -> None:
    class Own(Workflow):
        lease_timeout = 60

    def node(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent(define().inspect().lease_expires_at is not None)

    assert define(node, cls=Own).run().execution.result is True
    assert define(node, cls=Own, lease_timeout=None).run().execution.result is False


def test_c106_changed_copies_do_not_reach_a_segment_that_runs(define) -> None:
    copies: list[Workflow] = []

    def begin(event: StartEvent, state: WorkflowState) -> Next:
        copies.append(definition.reconfigure(nodes=[begin, end], max_steps=1, retain_completion=True))
        return Next()

    def end(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent("end")

    definition = define(begin, end)
    assert definition.run().execution.result == "end"
    assert definition.inspect() is None
    with pytest.raises(WorkflowError, match="budget"):
        copies[0].run()
