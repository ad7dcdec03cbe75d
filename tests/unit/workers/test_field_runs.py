"""Cases from the field: answers for the wrong branch, nodes that repeat what they did, deploys that meet waiting runs."""

import threading
from itertools import permutations
from typing import Any, ClassVar

import pytest

from persistence import PersistenceError
from workers import MeshClient, WorkersError, register
from workers.segments import run_segment
from workers.testing import InMemoryRuntime
from workflow import (
    ApprovalRequest,
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    JsonSerializer,
    ParallelEvent,
    RefusalReason,
    SealedSerializer,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    branch_id,
    interrupt,
    memoize,
)
from workflow.records import CONTROL
from workflow.registry import _TYPES, register_type


class Go(Event):
    pass


class Split(ParallelEvent):
    pass


class Ask(Event):
    pass


class Wait(Event):
    pass


class Mesh:
    def __init__(self) -> None:
        self.runtime = InMemoryRuntime()
        self.client = MeshClient(runtime=self.runtime)

    def deploys(self, *nodes: Any, **options: Any) -> None:
        """Have workers know the run's workflow by these nodes from now on."""
        options = {"start_event": Go(), "retain_for": 600, "branch_runner": ConcurrentBranchRunner(), **options}
        register("field", lambda workflow_id: Workflow(workflow_id, nodes=nodes, **options))

    def start(self, workflow_id: str = "w") -> Any:
        run = self.client.start("field", workflow_id)
        self.runtime.work()
        return run

    def publish(self, topic: str, payload: Any) -> None:
        self.runtime.signals.publish(topic, topic, payload)
        self.runtime.work()

    def question(self, workflow_id: str = "w") -> tuple[int, str]:
        """The number and the words of the question that a person is shown."""
        shown = self.client.inspect(workflow_id).interrupt
        return shown.id, shown.message

    def answer(self, run: Any, interrupt_id: int, payload: Any, **fence: str) -> bool:
        named = {"run_id": run.run_id, **fence}
        taken = self.client.approve(run.workflow_id, payload, interrupt_id=interrupt_id, **named)
        self.runtime.work()
        return taken


@pytest.fixture
def mesh() -> Mesh:
    return Mesh()


def refusal(call: Any) -> RefusalReason:
    with pytest.raises(WorkflowRefusedError) as refused:
        call()
    return refused.value.reason


# --- F1: answers routed to the wrong parallel branch ------------------------------------------------------------------------


def split(event: Go, state: WorkflowState) -> Split:
    return Split({"research": Ask(), "operations": Ask()})


def asking() -> Any:
    """A node of which two ask at the same time."""
    both = threading.Barrier(2)

    def ask(event: Ask, state: WorkflowState) -> StopEvent:
        memoize("meet", lambda: both.wait(10) and None)
        return StopEvent(interrupt(ApprovalRequest(f"{branch_id()}?")))

    return ask


def join(event: Split, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


def test_f1_each_answer_reaches_the_branch_that_asked_and_no_other(mesh) -> None:
    mesh.deploys(split, asking(), join)
    run = mesh.start()
    first, words = mesh.question()
    assert mesh.client.inspect("w").deferred_interrupts == 1

    # The answer to the other question, which nobody has been shown, waits for its turn.
    assert refusal(lambda: mesh.answer(run, first + 1, "to the other")) is RefusalReason.NOT_AWAITED
    assert mesh.question() == (first, words)

    assert mesh.answer(run, first, f"to {words}")
    second, other_words = mesh.question()
    assert {words, other_words} == {"research?", "operations?"}
    assert refusal(lambda: mesh.answer(run, first, f"to {words}")) is RefusalReason.NOT_AWAITED
    assert refusal(lambda: mesh.answer(run, first, "something else")) is RefusalReason.NOT_AWAITED
    assert refusal(lambda: mesh.answer(run, second, "late", run_id="run_of_yesterday")) is RefusalReason.STALE_RUN
    assert mesh.question() == (second, other_words)

    assert mesh.answer(run, second, f"to {other_words}")
    assert run.wait(0).result == {name: f"to {name}?" for name in ("research", "operations")}


def test_f1_an_answer_without_the_question_is_no_answer(mesh) -> None:
    mesh.deploys(split, asking(), join)
    mesh.start()
    with pytest.raises(TypeError, match="run_id"):
        mesh.client.approve("w", "yes")
    with pytest.raises(WorkersError, match="use approve"):
        mesh.client.signal("w", "approval", "yes")
    assert mesh.client.inspect("w").deferred_interrupts == 1


@pytest.mark.parametrize("order", list(permutations(["research", "operations", "research"])))
def test_f1_events_reach_the_branch_that_awaits_them_in_whatever_order_they_come(mesh, order) -> None:
    def wait(event: Ask, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event(f"{branch_id()}.done")["number"])

    mesh.deploys(split, wait, join)
    run = mesh.start()
    for number, name in enumerate(order):
        mesh.runtime.signals.publish(str(number), f"{name}.done", {"number": number})
        mesh.runtime.work()
    assert run.wait(0).result == {name: order.index(name) for name in ("research", "operations")}


# --- F2: a node runs again from its top with each answer --------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(["first", "second", "sibling"])))
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_f2_what_a_node_did_before_its_waits_is_done_once_in_whatever_order_they_are_answered(mesh, order, at_once) -> None:
    models, mails, runs = [], [], []

    def fork(event: Go, state: WorkflowState) -> Split:
        return Split({"main": Ask(), "side": Wait()})

    def busy(event: Ask, state: WorkflowState) -> StopEvent:
        runs.append("busy")
        text = memoize("model", lambda: models.append("asked") or "the text")
        memoize("mail", lambda: mails.append(text))
        return StopEvent([await_event("first"), await_event("second")])

    def side(event: Wait, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("sibling"))

    mesh.deploys(fork, busy, side, join)
    run = mesh.start()
    for topic in order:
        mesh.runtime.signals.publish(topic, topic, {"of": topic})
        if not at_once:
            mesh.runtime.work()
    mesh.runtime.work()

    assert run.wait(0).result == {"main": [{"of": "first"}, {"of": "second"}], "side": {"of": "sibling"}}
    assert (models, mails) == (["asked"], ["the text"])
    assert len(runs) == 3, "once at first, and once with each of its own two answers"


# --- F3: code or graph changed while a run waits ----------------------------------------------------------------------------


class Fetched(Event):
    pass


class Noted(Event):
    pass


def fetch(event: Go, state: WorkflowState) -> Fetched:
    state["done"] = [*state.get("done", []), "fetch"]
    return Fetched()


def approve(event: Fetched, state: WorkflowState) -> StopEvent:
    return StopEvent([interrupt(ApprovalRequest("send it?")), state["done"]])


def renamed(event: Fetched, state: WorkflowState) -> StopEvent:
    return approve(event, state)


def note_first(event: Go, state: WorkflowState) -> Noted:
    state["done"] = ["note"]
    return Noted()


def fetch_later(event: Noted, state: WorkflowState) -> Fetched:
    return Fetched()


def approve_then(event: Fetched, state: WorkflowState) -> Noted:
    state["answer"] = interrupt(ApprovalRequest("send it?"))
    return Noted()


approve_then.step_name = approve.__qualname__


def finish(event: Noted, state: WorkflowState) -> StopEvent:
    return StopEvent([state["answer"], state["done"], "noted"])


class Lenient(WorkflowState):
    budget: int = 7


def approve_lenient(event: Fetched, state: Lenient) -> StopEvent:
    return StopEvent([interrupt(ApprovalRequest("send it?")), state["done"], state.budget])


approve_lenient.step_name = approve.__qualname__


GOES_ON = {
    "nothing": ((fetch, approve), {}, ["yes", ["fetch"]]),
    "a node after": ((fetch, approve_then, finish), {}, ["yes", ["fetch"], "noted"]),
    "a field with a default": ((fetch, approve_lenient), {"state": Lenient()}, ["yes", ["fetch"], 7]),
}
REFUSED = {
    "the waiting node is renamed": ((fetch, renamed), {}, "handled by 'renamed' now"),
    "a node before": ((note_first, fetch_later, approve), {}, "'fetch'"),
    "the waiting node is gone": ((fetch,), {}, "no node handles Fetched"),
    "another version": ((fetch, approve), {"version": "2", "compatible_versions": ("1",)}, "version '0'"),
}


def waiting(mesh: Mesh) -> Any:
    mesh.deploys(fetch, approve, version="0")
    run = mesh.start()
    assert mesh.client.inspect("w").status is WorkflowStatus.SUSPENDED
    return run


@pytest.mark.parametrize("change", GOES_ON)
def test_f3_a_waiting_run_goes_on_after_a_compatible_deploy(mesh, change) -> None:
    nodes, options, result = GOES_ON[change]
    run = waiting(mesh)
    mesh.deploys(*nodes, **options)
    mesh.answer(run, 1, "yes")
    assert run.wait(0).result == result


@pytest.mark.parametrize("change", REFUSED)
def test_f3_an_incompatible_deploy_is_refused_with_what_changed_and_the_run_is_as_it_was(mesh, change) -> None:
    nodes, options, words = REFUSED[change]
    run = waiting(mesh)
    before = mesh.runtime.store.load("w")
    mesh.deploys(*nodes, **options)
    definition = mesh.runtime.definition("field", "w")
    with pytest.raises(WorkflowRefusedError, match=words) as refused:
        definition.run(ExecutionRequest.signal("approval", "yes", expected_run_id=run.run_id))
    assert refused.value.reason is RefusalReason.INCOMPATIBLE_VERSION
    assert mesh.runtime.store.load("w") == before


@pytest.mark.parametrize("change", REFUSED)
def test_f3_people_are_told_of_it_once_and_the_run_goes_on_when_the_deploy_is_taken_back(mesh, change) -> None:
    nodes, options, words = REFUSED[change]
    run = waiting(mesh)
    mesh.deploys(*nodes, **options)
    mesh.answer(run, 1, "yes")
    mesh.client.retry("w")
    mesh.runtime.work()
    assert mesh.client.inspect("w").input_accepted
    [told] = mesh.runtime.signals.read(["workflow.stalled"])
    assert words in told.payload["message"]
    mesh.deploys(fetch, approve, version="0")
    mesh.client.retry("w")
    mesh.runtime.work()
    assert run.wait(0).result == ["yes", ["fetch"]]


def test_f3_a_run_that_the_new_program_cannot_continue_may_be_begun_anew(mesh) -> None:
    old = waiting(mesh)
    mesh.deploys(note_first, fetch_later, approve)
    assert mesh.client.abandon("w", run_id=old.run_id)
    new = mesh.start()
    assert new.created
    mesh.answer(new, 1, "yes")
    assert new.wait(0).result == ["yes", ["note"]]


def before_the_deploy() -> tuple[Any, Any]:
    class Read(Event):
        type_name: ClassVar[str] = "field-read"

    def read(event: Go, state: WorkflowState) -> Read:
        return Read()

    def confirm(event: Read, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(ApprovalRequest("send it?")))

    return read, confirm


def after_the_deploy() -> tuple[Any, Any]:
    class Read(Event):
        type_name: ClassVar[str] = "field-read"
        source: str

    def read(event: Go, state: WorkflowState) -> Read:
        return Read(source="feed")

    def confirm(event: Read, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(ApprovalRequest("send it?")))

    for new, old in zip((read, confirm), before_the_deploy(), strict=True):
        new.__qualname__ = old.__qualname__
    register_type(Read)
    return read, confirm


def test_f3_a_required_field_that_a_waiting_event_lacks_is_named_and_nothing_is_lost(mesh) -> None:
    mesh.deploys(*before_the_deploy())
    run = mesh.start()
    mesh.deploys(*after_the_deploy())
    mesh.answer(run, 1, "yes")
    [told] = mesh.runtime.signals.read(["workflow.stalled"])
    assert "Read is defined otherwise now (source: Field required)" in told.payload["message"]
    mesh.deploys(*before_the_deploy())
    mesh.client.retry("w")
    mesh.runtime.work()
    assert run.wait(0).result == "yes"


def test_of_a_sealed_run_that_cannot_be_continued_nothing_from_within_is_told(mesh) -> None:
    sealed = SealedSerializer(JsonSerializer(), {"1": b"k" * 32})
    mesh.deploys(*before_the_deploy(), serializer=sealed)
    run = mesh.start()
    mesh.deploys(*after_the_deploy(), serializer=sealed)
    mesh.answer(run, 1, "yes")
    [told] = mesh.runtime.signals.read(["workflow.stalled"])
    assert (told.payload["error"], told.payload.get("message")) == ("UnreadableRecordError", None)


def test_f3_of_an_event_whose_class_has_gone_people_are_told_by_its_name_alone(mesh) -> None:
    class Card(Event):
        type_name: ClassVar[str] = "field-card"
        number: str

    def read(event: Go, state: WorkflowState) -> Card:
        return Card(number="4111")

    def confirm(event: Card, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(ApprovalRequest("send it?")))

    mesh.deploys(read, confirm)
    run = mesh.start()
    _TYPES.pop("field-card")
    mesh.deploys(fetch, approve)
    mesh.answer(run, 1, "yes")
    [told] = mesh.runtime.signals.read(["workflow.stalled"])
    assert "4111" not in str(told.payload)
    assert mesh.client.inspect("w").input_accepted


def test_damage_that_is_met_once_the_run_is_claimed_fails_it_and_is_told_as_that_alone(mesh) -> None:
    def work(event: Go, state: WorkflowState) -> StopEvent:
        memoize("number", lambda: 7)
        return StopEvent(await_event("go"))

    mesh.deploys(work)
    run = mesh.start()
    store = mesh.runtime.store
    held = store.load("w")
    [memo] = [key for key in held if key.endswith("number")]
    store.write_if_unchanged("w", CONTROL, held[CONTROL], {memo: b"damaged"})
    mesh.publish("go", {})

    assert run.wait(0).status is WorkflowStatus.FAILED
    assert mesh.client.history("w")[-1].kind.value == "failed"
    assert [signal.topic for signal in mesh.runtime.signals.read(["workflow.*"])] == ["workflow.failed"]


def test_a_store_that_refuses_a_write_is_no_word_on_the_run(mesh, monkeypatch) -> None:
    mesh.deploys(fetch, approve)
    run = mesh.client.start("field", "w")

    def full(*arguments: Any, **options: Any) -> bool:
        raise PersistenceError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(mesh.runtime.store, "write_if_unchanged", full)
        run_segment(mesh.runtime, "field", "w", run.run_id)
    mesh.runtime.work()
    assert mesh.client.inspect("w").status is WorkflowStatus.SUSPENDED
    assert mesh.runtime.signals.read(["workflow.stalled", "workflow.failed"]) == []
