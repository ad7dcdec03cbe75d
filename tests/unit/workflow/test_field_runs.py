"""Cases from the field: answers find their branch, effects are done once, deploys meet waiting runs, values stay the same."""

import asyncio
import dataclasses
import datetime as dt
import enum
import itertools
import math
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest

from persistence import PersistenceError
from workflow import (
    ApprovalRequest,
    ConcurrentBranchRunner,
    Event,
    ExecutionRequest,
    InputTranslationError,
    Node,
    ParallelEvent,
    RefusalReason,
    SequentialBranchRunner,
    SerializationError,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    amemoize,
    await_event,
    branch_id,
    interrupt,
    memoize,
)
from workflow.testing import EffectOutsideMemoWarning, warn_of_effects

PATIENCE = 10.0
"""Seconds after which something that has not come fails its test."""


def refusal(call: Callable[[], Any]) -> WorkflowRefusedError:
    with pytest.raises(WorkflowRefusedError) as refused:
        call()
    return refused.value


class Turns:
    """Lets two branches that run at once reach their first waits in a chosen order."""

    def __init__(self, first: str) -> None:
        self._first = first
        self._both = threading.Barrier(2, timeout=PATIENCE)
        self._over = False

    def reach(self, name: str, definition: Workflow) -> None:
        if self._over:
            return
        self._both.wait()
        if name != self._first:
            deadline = time.monotonic() + PATIENCE
            while definition.inspect().interrupt is None:
                assert time.monotonic() < deadline, f"{self._first} never asked"
                time.sleep(0.001)
            self._over = True


class Fork(ParallelEvent):
    pass


class Left(Event):
    pass


class Right(Event):
    pass


def join(event: Fork, state: WorkflowState) -> StopEvent:
    return StopEvent(event.results)


# --- F1: answers routed to the wrong parallel branch ------------------------------------------------------------------------

TEAM = ("research", "operations")


@pytest.fixture
def two_ask(define) -> Callable[..., Workflow]:
    """Return what makes a run in which both branches ask a person, one of them first, and the definition of it."""

    def make(first: str, **options: Any) -> Workflow:
        turns = Turns(first)

        def fork(event: StartEvent, state: WorkflowState) -> Fork:
            return Fork(dict.fromkeys(TEAM, Left()))

        def ask(event: Left, state: WorkflowState) -> StopEvent:
            name = branch_id() or ""
            turns.reach(name, definition)
            return StopEvent([name, interrupt(ApprovalRequest(f"{name}?"))])

        definition = define(fork, ask, join, branch_runner=ConcurrentBranchRunner(), **options)
        seen = definition.run(ExecutionRequest.start(run_id="r"))
        assert (seen.interrupt_request.id, seen.interrupt_request.message) == (1, f"{first}?")
        assert definition.inspect().deferred_interrupts == 1
        return definition

    return make


def click(number: int, name: str) -> ExecutionRequest:
    """What a person sends who was shown question ``number``, that of the branch ``name``."""
    return ExecutionRequest.resume(f"for {name}", expected_run_id="r", expected_interrupt_id=number)


@pytest.mark.parametrize("first", TEAM)
@pytest.mark.parametrize("clicks", list(itertools.product((1, 2), repeat=4)), ids=str)
def test_f1_in_whatever_order_people_click_each_answer_reaches_the_branch_that_asked(two_ask, store, first, clicks) -> None:
    definition = two_ask(first)
    names = {1: first, 2: next(name for name in TEAM if name != first)}
    current, result = 1, None
    for number in (*clicks, 1, 2):
        if number == current:
            state = definition.run(click(number, names[number]))
            current, result = current + 1, state.execution.result
            continue
        before = store.load("w")
        store.forget()
        reason = refusal(lambda number=number: definition.run(click(number, names[number]))).reason
        assert reason is (RefusalReason.NOT_AWAITED if current <= 2 else RefusalReason.STALE_RUN)
        assert (store.writes, store.load("w")) == ([], before)
    assert result == {name: [name, f"for {name}"] for name in TEAM}


@pytest.mark.parametrize("first", TEAM)
def test_f1_a_second_click_on_the_first_question_is_stale_and_never_answers_the_second(two_ask, first) -> None:
    definition = two_ask(first)
    seen = definition.submit_inputs(f"for {first}")
    other = seen.run().interrupt_request
    assert other.message != f"{first}?"
    assert refusal(seen.run).reason is RefusalReason.STALE_ATTEMPT
    assert refusal(lambda: definition.run(click(1, first))).reason is RefusalReason.NOT_AWAITED
    assert definition.inspect().interrupt == other
    last = definition.submit_inputs(f"for {other.message[:-1]}")
    assert last.run().execution.result == {name: [name, f"for {name}"] for name in TEAM}
    assert refusal(last.run).reason is RefusalReason.STALE_RUN


@pytest.mark.parametrize(
    "bare", [ExecutionRequest.resume("yes"), ExecutionRequest.signal("approval", "yes")], ids=["resume", "signal"]
)
@pytest.mark.parametrize("first", TEAM)
def test_f1_an_answer_that_names_no_question_is_for_the_one_that_is_shown_and_never_for_one_in_line(
    two_ask, bare, first
) -> None:
    """Whoever answers for people names the question: those who drive a run by hand have just been shown it."""
    definition = two_ask(first)
    other = next(name for name in TEAM if name != first)
    shown = definition.run(bare).interrupt_request
    assert (shown.id, shown.message) == (2, f"{other}?")
    result = definition.run(click(2, other)).execution.result
    assert result == {first: [first, "yes"], other: [other, f"for {other}"]}


def test_f1_an_answer_may_be_bound_to_the_attempt_in_which_the_question_was_seen_and_to_no_other(two_ask) -> None:
    definition = two_ask("operations")

    def answer(attempt: int) -> ExecutionRequest:
        return ExecutionRequest.resume(attempt, expected_run_id="r", expected_execution_attempt=attempt)

    for wrong in (0, 2):
        assert refusal(lambda wrong=wrong: definition.run(answer(wrong))).reason is RefusalReason.STALE_ATTEMPT
    assert definition.run(answer(1)).interrupt_request.message == "research?"
    for wrong in (1, 3):
        assert refusal(lambda wrong=wrong: definition.run(answer(wrong))).reason is RefusalReason.STALE_ATTEMPT
    result = definition.run(answer(2)).execution.result
    assert result == {"research": ["research", 2], "operations": ["operations", 1]}


def test_f1_question_one_of_the_next_run_is_not_that_of_the_last(two_ask) -> None:
    definition = two_ask("research")
    late = click(1, "research")
    definition.abandon("r")
    definition.run(ExecutionRequest.start(run_id="r2"))
    assert refusal(lambda: definition.run(late)).reason is RefusalReason.STALE_RUN
    assert (definition.inspect().interrupt.id, definition.inspect().input_accepted) == (1, False)


@pytest.mark.parametrize("order", list(itertools.permutations(TEAM)))
def test_f1_the_name_of_an_event_binds_it_to_the_branch_that_awaits_it(define, order) -> None:
    turns = Turns("research")

    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork(dict.fromkeys(TEAM, Left()))

    def wait(event: Left, state: WorkflowState) -> StopEvent:
        name = branch_id() or ""
        turns.reach(name, definition)
        return StopEvent(await_event(name))

    definition = define(fork, wait, join, branch_runner=ConcurrentBranchRunner())
    state, waiting = definition.run(), list(order)
    while waiting:
        name = waiting.pop(0)
        if state.interrupt_request.awaited_event == name:
            state = definition.run(ExecutionRequest.signal(name, f"to {name}"))
        else:
            refused = refusal(lambda name=name: definition.run(ExecutionRequest.signal(name, f"to {name}")))
            assert refused.reason is RefusalReason.NOT_AWAITED
            waiting.append(name)
    assert state.execution.result == {name: f"to {name}" for name in TEAM}


# --- F2: a node runs again from its top with each answer --------------------------------------------------------------------

EVENTS = ("wait 1", "wait 2", "sibling")


class Fakes:
    """A model and a mail server that count."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def call(self, name: str) -> str:
        self.calls[name] += 1
        return f"{name} {self.calls[name]}"

    async def acall(self, name: str) -> str:
        return self.call(name)


@pytest.fixture
def fakes() -> Fakes:
    return Fakes()


@pytest.fixture
def busy(define, fakes) -> Callable[..., Workflow]:
    """Return what makes the workflow of the case as a new process would: nothing is shared but the fakes and who is first."""

    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"busy": Left(), "side": Right()})

    def make(kind: str, runner: Any, turns: Turns | None = None) -> Workflow:
        def meet(name: str) -> None:
            fakes.call(f"{name} runs")
            if turns is not None:
                turns.reach(name, definition)

        def work(event: Left, state: WorkflowState) -> StopEvent:
            text = memoize("model", lambda: fakes.call("model"))
            memoize("mail", lambda: fakes.call("mail"))
            meet("busy")
            return StopEvent([text, await_event("wait 1"), await_event("wait 2")])

        async def work_async(event: Left, state: WorkflowState) -> StopEvent:
            text = await amemoize("model", lambda: fakes.acall("model"))
            await amemoize("mail", lambda: fakes.acall("mail"))
            await asyncio.to_thread(meet, "busy")
            return StopEvent([text, await_event("wait 1"), await_event("wait 2")])

        def side(event: Right, state: WorkflowState) -> StopEvent:
            meet("side")
            return StopEvent(await_event("sibling"))

        definition = define(fork, work if kind == "plain" else work_async, side, join, branch_runner=runner)
        return definition

    return make


def answered(definition: Callable[[], Workflow], order: tuple[str, ...]) -> Any:
    """The result of a run whose events keep coming in this order, each again until it is taken, with idle looks between."""
    state, waiting = definition().run(), list(order)
    while waiting:
        event = waiting.pop(0)
        if state.interrupt_request.awaited_event == event:
            state = definition().run(ExecutionRequest.signal(event, event))
        else:
            refusal(lambda event=event: definition().run(ExecutionRequest.signal(event, event)))
            definition().run(ExecutionRequest.resume())
            waiting.append(event)
    return state.execution.result


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS)), ids=" ".join)
@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("how", ["one after the other", "busy asks first", "side asks first"])
def test_f2_the_model_is_asked_and_the_mail_sent_once_in_whatever_order_answers_come(busy, fakes, how, kind, order) -> None:
    if how == "one after the other":
        result = answered(lambda: busy(kind, SequentialBranchRunner()), order)
    else:
        turns = Turns(how.split()[0])
        result = answered(lambda: busy(kind, ConcurrentBranchRunner(), turns), order)
    assert result == {"busy": ["model 1", "wait 1", "wait 2"], "side": "sibling"}
    # Once at first, and once with each answer of its own: a sibling's answer, a refusal and a look run nothing again.
    assert fakes.calls == {"model": 1, "mail": 1, "busy runs": 3, "side runs": 2}


def test_f2_what_stands_outside_of_memos_is_repeated_and_the_check_says_so_at_the_first_wait(define, tmp_path) -> None:
    box = tmp_path / "outbox"

    def send() -> None:
        with box.open("a") as letters:
            letters.write("letter\n")

    def careless(event: StartEvent, state: WorkflowState) -> StopEvent:
        send()
        return StopEvent([await_event("wait 1"), await_event("wait 2")])

    def careful(event: StartEvent, state: WorkflowState) -> StopEvent:
        memoize("mail", send)
        return StopEvent([await_event("wait 1"), await_event("wait 2")])

    def letters(node: Callable[..., Any]) -> tuple[int, list[Any]]:
        box.unlink(missing_ok=True)
        with warnings.catch_warnings(record=True, action="always") as told:
            definition = define(node)
            definition.run()
            at_first = list(told)
            definition.run(ExecutionRequest.signal("wait 1", 1))
            assert definition.run(ExecutionRequest.signal("wait 2", 2)).execution.result == [1, 2]
        return len(box.read_text().splitlines()), at_first

    warn_of_effects()
    try:
        sent, [warning] = letters(careless)
        assert letters(careful) == (1, [])
    finally:
        warn_of_effects(active=False)
    assert sent == 3
    assert warning.category is EffectOutsideMemoWarning
    assert "put it in memoize" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, careless.__code__.co_firstlineno + 1)


def test_f2_the_rule_is_written_down_where_the_guarantees_are() -> None:
    page = Path(__file__).parents[3].joinpath("docs/explanation/exactly-once.md").read_text()
    rule = page.partition("## The rule for nodes")[2]
    assert "inside a memo" in rule
    assert "warn_of_effects" in rule


# --- F3: code or graph changed while a run waits ----------------------------------------------------------------------------

RUNS = [f"order:{number}" for number in range(5)]


class Drafted(Event):
    type_name: ClassVar[str] = "field.Drafted"


class Approved(Event):
    pass


class Checked(Event):
    pass


class Draft(Node):
    step_name = "draft"

    def __call__(self, event: StartEvent, state: WorkflowState) -> Drafted:
        state["log"] = ["draft"]
        return Drafted()


class Approve(Node):
    step_name = "approve"

    def __call__(self, event: Drafted, state: WorkflowState) -> Approved:
        state["answer"] = self.interrupt(ApprovalRequest("send it?"))
        return Approved()


class Send(Node):
    step_name = "send"

    def __call__(self, event: Approved, state: WorkflowState) -> StopEvent:
        return StopEvent([*state["log"], state["answer"], "send"])


class RenamedDraft(Draft):
    step_name = "write"


class MovedDraft(Draft):
    """Another class, the same step."""


class RenamedApprove(Approve):
    step_name = "ask"


class DraftBehindCheck(Node):
    step_name = "draft"

    def __call__(self, event: Checked, state: WorkflowState) -> Drafted:
        return Drafted()


class CheckFirst(Node):
    step_name = "check"

    def __call__(self, event: StartEvent, state: WorkflowState) -> Checked:
        return Checked()


class CheckDraft(Node):
    step_name = "check"

    def __call__(self, event: Drafted, state: WorkflowState) -> Checked:
        state["log"] = [*state["log"], "check"]
        return Checked()


class ApproveBehindCheck(Node):
    step_name = "approve"

    def __call__(self, event: Checked, state: WorkflowState) -> Approved:
        state["answer"] = self.interrupt(ApprovalRequest("send it?"))
        return Approved()


class CheckAnswer(Node):
    step_name = "check"

    def __call__(self, event: Approved, state: WorkflowState) -> Checked:
        state["log"] = [*state["log"], "check"]
        return Checked()


class SendBehindCheck(Node):
    step_name = "send"

    def __call__(self, event: Checked, state: WorkflowState) -> StopEvent:
        return StopEvent([*state["log"], state["answer"], "send"])


class Archive(Node):
    def __call__(self, event: Checked, state: WorkflowState) -> StopEvent:
        return StopEvent("archived")


class BudgetState(WorkflowState):
    budget: int


class SendWithinBudget(Node):
    step_name = "send"

    def __call__(self, event: Approved, state: BudgetState) -> StopEvent:
        return StopEvent([*state["log"], state["answer"], f"send for {state.budget}"])


ORIGINAL = (Draft(), Approve(), Send())

GOES_ON: dict[str, tuple[tuple[Node, ...], dict[str, Any], list[str]]] = {
    "nothing": (ORIGINAL, {}, ["draft", "yes", "send"]),
    "a class that keeps its step name": ((MovedDraft(), Approve(), Send()), {}, ["draft", "yes", "send"]),
    "a node after": ((Draft(), Approve(), CheckAnswer(), SendBehindCheck()), {}, ["draft", "check", "yes", "send"]),
    "a node beside": ((*ORIGINAL, Archive()), {}, ["draft", "yes", "send"]),
    "a required field of the state, filled by the seed": (
        (Draft(), Approve(), SendWithinBudget()),
        {"state": BudgetState(budget=7)},
        ["draft", "yes", "send for 7"],
    ),
    "a version that is listed": (ORIGINAL, {"version": "2", "compatible_versions": ("1",)}, ["draft", "yes", "send"]),
}

REFUSED: dict[str, tuple[tuple[Node, ...], dict[str, Any], str]] = {
    "a passed node renamed": ((RenamedDraft(), Approve(), Send()), {}, "step 0 was made by 'draft', but its event StartEvent"),
    "the waiting node renamed": ((Draft(), RenamedApprove(), Send()), {}, "it waits in step 'approve-1', but its event"),
    "a node before all": ((CheckFirst(), DraftBehindCheck(), Approve(), Send()), {}, "is handled by 'check' now"),
    "a node just before": ((Draft(), CheckDraft(), ApproveBehindCheck(), Send()), {}, "is handled by 'check' now"),
    "the waiting node removed": ((Draft(), Send()), {}, "no node handles Drafted, the event of step 1"),
    "a version that is not listed": (ORIGINAL, {"version": "2"}, "it began with version '1', and this is '2'"),
}


@pytest.fixture
def waiting(define) -> Callable[..., Workflow]:
    """Return what makes five runs that wait for approval, and gives the definition of one of them as it is deployed now."""
    for workflow_id in RUNS:
        run = define(*ORIGINAL, workflow_id=workflow_id, version="1").run(ExecutionRequest.start(run_id="r"))
        assert run.interrupt_request.message == "send it?"

    def deployed(nodes: tuple[Any, ...] = ORIGINAL, **options: Any) -> Callable[[str], Workflow]:
        return lambda workflow_id: define(*nodes, workflow_id=workflow_id, **options)

    return deployed


YES = ExecutionRequest.resume("yes", expected_run_id="r", expected_interrupt_id=1)


@pytest.mark.parametrize("change", GOES_ON)
def test_f3_after_a_compatible_deploy_all_runs_that_waited_go_on(waiting, change) -> None:
    nodes, options, result = GOES_ON[change]
    deployed = waiting(nodes, **options)
    for workflow_id in RUNS:
        state = deployed(workflow_id).run(YES)
        assert (state.execution.run_id, state.execution.result) == ("r", result)


@pytest.mark.parametrize("change", REFUSED)
@pytest.mark.parametrize("choice", ["go on as before", "start anew"])
def test_f3_an_incompatible_deploy_is_refused_with_its_reason_and_leaves_every_choice(waiting, store, change, choice) -> None:
    nodes, options, words = REFUSED[change]
    deployed = waiting(nodes, **options)
    for workflow_id in RUNS:
        before, entry = store.load(workflow_id), store.entry(workflow_id)
        for _ in range(2):
            refused = refusal(lambda workflow_id=workflow_id: deployed(workflow_id).run(YES))
            assert refused.reason is RefusalReason.INCOMPATIBLE_VERSION
            assert words in str(refused)
            assert "continue it with the definition that began it, or abandon() it and start anew" in str(refused)
        # Neither failed nor half answered: the question still stands.
        assert (store.load(workflow_id), store.entry(workflow_id)) == (before, entry)
        assert deployed(workflow_id).inspect().status is WorkflowStatus.SUSPENDED
    for workflow_id in RUNS:
        if choice == "go on as before":
            assert waiting(version="1")(workflow_id).run(YES).execution.result == ["draft", "yes", "send"]
        else:
            assert deployed(workflow_id).abandon("r") is True
            anew = deployed(workflow_id).ignite(run_id="anew")
            assert deployed(workflow_id).inspect().run_id == anew
            assert refusal(lambda workflow_id=workflow_id: deployed(workflow_id).run(YES)).reason is RefusalReason.STALE_RUN


def team(roles: tuple[str, ...], done: list[str]) -> list[Node]:
    """The nodes of a workflow that has each role work, collects what they did, and then asks for approval."""

    class Plan(Node):
        step_name = "plan"

        def __call__(self, event: StartEvent, state: WorkflowState) -> Fork:
            return Fork({role: ROLES[role]() for role in roles})

    class Collect(Node):
        step_name = "collect"

        def __call__(self, event: Fork, state: WorkflowState) -> Checked:
            state["roles"] = sorted(event.results)
            return Checked()

    class Approval(Node):
        step_name = "approval"

        def __call__(self, event: Checked, state: WorkflowState) -> StopEvent:
            return StopEvent([self.interrupt(ApprovalRequest("send it?")), state["roles"]])

    return [Plan(), Collect(), Approval(), *(work_of(role, done) for role in roles)]


def work_of(role: str, done: list[str]) -> Node:
    class Work(Node):
        step_name = role

        def __call__(self, event: Any, state: WorkflowState) -> StopEvent:
            done.append(role)
            return StopEvent(self.await_event("facts") if role == "operations" else None)

    Work.__call__.__annotations__["event"] = ROLES[role]
    return Work()


class Research(Event):
    pass


class Operations(Event):
    pass


class Finance(Event):
    pass


ROLES: dict[str, type[Event]] = {"research": Research, "operations": Operations, "finance": Finance}
FACTS = ExecutionRequest.signal("facts", {})


@pytest.mark.parametrize("now", [("research", "operations", "finance"), ("finance",), ("operations", "research")])
def test_f3_a_run_past_its_roles_goes_on_with_those_it_had(define, now) -> None:
    done: list[str] = []
    for workflow_id in RUNS:
        began = define(*team(("research", "operations"), done), workflow_id=workflow_id)
        began.run()
        assert began.run(FACTS).interrupt_request.message == "send it?"
    done.clear()
    for workflow_id in RUNS:
        state = define(*team(now, done), workflow_id=workflow_id).run(ExecutionRequest.resume("yes"))
        assert state.execution.result == ["yes", ["operations", "research"]]
    assert done == []


def test_f3_a_run_among_its_roles_gets_no_new_one_and_loses_none_silently(define, store) -> None:
    done: list[str] = []
    define(*team(("research", "operations"), done)).run()
    before = store.load("w")
    refused = refusal(lambda: define(*team(("research", "finance"), done)).run(FACTS))
    assert refused.reason is RefusalReason.INCOMPATIBLE_VERSION
    assert "no node handles Operations" in str(refused)
    assert store.load("w") == before

    with_one_more = define(*team(("finance", "research", "operations"), done))
    with_one_more.run(FACTS)
    assert with_one_more.run(ExecutionRequest.resume("yes")).execution.result == ["yes", ["operations", "research"]]
    assert done == ["research", "operations", "operations"]


def letter_class(**fields: Any) -> type[Event]:
    """The event class as one deploy defines it: each definition takes the place of the one before."""
    body = {"__module__": __name__, "__annotations__": {**dict.fromkeys(fields, str)}, "type_name": "field.Letter"}
    body["__annotations__"]["type_name"] = ClassVar[str]
    return type("Letter", (Event,), {**body, **{name: value for name, value in fields.items() if value is not ...}})


def letters(letter: type[Event]) -> list[Node]:
    """The nodes of a workflow that waits with a letter in hand."""

    class Write(Node):
        step_name = "write"

        def __call__(self, event: StartEvent, state: WorkflowState) -> Any:
            return letter(text="hello")

    class Mail(Node):
        step_name = "mail"

        def __call__(self, event: Any, state: WorkflowState) -> StopEvent:
            return StopEvent([self.interrupt(ApprovalRequest("send it?")), event.model_dump()])

    Write.__call__.__annotations__["return"] = letter
    Mail.__call__.__annotations__["event"] = letter
    return [Write(), Mail()]


def test_f3_a_new_required_field_is_named_and_a_default_for_it_lets_all_runs_go_on(define, store) -> None:
    original = letter_class(text=...)
    for workflow_id in RUNS:
        define(*letters(original), workflow_id=workflow_id).run(ExecutionRequest.start(run_id="r"))

    required = letter_class(text=..., language=...)
    for workflow_id in RUNS:
        before = store.load(workflow_id)
        with pytest.raises(PersistenceError, match=r"(?s)Letter.*language.*Field required"):
            define(*letters(required), workflow_id=workflow_id).run(YES)
        assert store.load(workflow_id) == before

    defaulted = letter_class(text=..., language="en")
    for workflow_id in RUNS:
        state = define(*letters(defaulted), workflow_id=workflow_id).run(YES)
        assert state.execution.result == ["yes", {"text": "hello", "language": "en"}]


# --- F5: values on their way through the store ------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


@dataclasses.dataclass(frozen=True)
class Line:
    text: str
    colour: Colour
    length: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.text))


class Carried(Event):
    value: Any


class Handed(Event):
    value: Any


VALUES: dict[str, Any] = {
    "an enum deep inside": {"a": [({"colour": Colour.RED, "size": Size.SMALL},)]},
    "a dataclass with a field that init does not take": Line("four", Colour.RED),
    "a decimal": Decimal("1.10"),
    "an aware moment": dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Vienna"), fold=1),
    "a naive moment": dt.datetime(2026, 10, 25, 2, 30),  # noqa: DTZ001
    "a date": dt.date(2026, 11, 30),
    "a uuid": uuid.UUID(int=7),
    "bytes": b"\x00\xff",
    "a tuple": (1, ("a", [2])),
    "a set": {1, 2, "three"},
    "keys that are numbers": {1: "a", "1": "b", (2, 3): None},
    "no number": math.nan,
    "a long number": 2**70,
    "half a character": "caf\ud83d",
    "two halves": "\ud83d\ude00",
    "keys that look like a codec's": {"__type__": "os.system", "__value__": 1, "$": "@x", "v": {"__type__": "tuple"}},
    "one and true": [1, True, 1.0, 0, False, -0.0],
}
TYPES = (Colour, Size, Line)


def shape(value: Any) -> Any:
    """What is equal for two values only if they are equal in type and value all the way down."""
    kind = type(value)
    if kind is dict:
        return kind, [(shape(key), shape(item)) for key, item in value.items()]
    if kind in (list, tuple):
        return kind, [shape(item) for item in value]
    if kind in (set, frozenset):
        return kind, sorted(map(repr, map(shape, value)))
    if dataclasses.is_dataclass(value):
        return kind, [(field.name, shape(getattr(value, field.name))) for field in dataclasses.fields(value)]
    return kind, repr(value), getattr(value, "fold", None)


def carry(event: Carried, state: WorkflowState) -> Handed:
    state["value"] = event.value
    return Handed(value=[event.value])


def compare(event: Handed, state: WorkflowState) -> StopEvent:
    made = memoize("made", lambda: event.value[0])
    await_event("go")
    return StopEvent({"event": event.value[0], "state": state["value"], "memo": made, "again": memoize("made", lambda: None)})


@pytest.mark.parametrize("name", VALUES)
def test_f5_a_value_is_itself_in_events_state_memos_and_results_after_the_wait(define, name) -> None:
    value = VALUES[name]

    def definition() -> Workflow:
        return define(carry, compare, types=TYPES, retain_completion=True)

    definition().run(ExecutionRequest.start(Carried(value=value)))
    assert shape(definition().inspect().start_event.value) == shape(value)
    definition().run(ExecutionRequest.signal("go"))
    kept = definition().run(ExecutionRequest.resume()).execution.result
    assert {place: shape(found) for place, found in kept.items()} == dict.fromkeys(kept, shape(value))


class Foreign:
    pass


UNFIT = {"a": [1, (Foreign(),)]}


def put_in_state(event: Carried, state: WorkflowState) -> Handed:
    state["draft"] = event.value and UNFIT
    return Handed(value=None)


def put_in_event(event: Carried, state: WorkflowState) -> Handed:
    return Handed(value=event.value and UNFIT)


def put_in_memo(event: Carried, state: WorkflowState) -> StopEvent:
    return StopEvent(memoize("draft", lambda: event.value and UNFIT))


def put_in_result(event: Carried, state: WorkflowState) -> StopEvent:
    return StopEvent(event.value and UNFIT)


@pytest.mark.parametrize(
    ("node", "path"),
    [
        (put_in_state, "the state's 'draft' cannot be stored: value['a'][1][0]"),
        (put_in_event, "value['event'].value['a'][1][0]"),
        (put_in_memo, "value['a'][1][0]"),
        (put_in_result, "value['result']['a'][1][0]"),
    ],
)
def test_f5_what_records_cannot_hold_is_refused_by_its_path_before_anything_is_kept(define, store, node, path) -> None:
    definition = define(node, compare, retain_completion=True)
    with pytest.raises(SerializationError) as refused:
        definition.run(ExecutionRequest.start(Carried(value=True)))
    assert str(refused.value).startswith(f"{path} is of type Foreign")
    assert refused.value.permanent
    assert [key for key in store.load("w") if "-0" in key] == []
    assert path in definition.inspect().failure.message


@pytest.mark.parametrize("call", ["run", "ignite"])
def test_f5_a_start_with_what_records_cannot_hold_is_refused_by_its_path_and_starts_nothing(define, store, call) -> None:
    definition = define(carry, compare)
    calls: dict[str, Callable[[], Any]] = {
        "run": lambda: definition.run(ExecutionRequest.start(Carried(value=UNFIT))),
        "ignite": lambda: definition.ignite(Carried(value=UNFIT)),
    }
    with pytest.raises(SerializationError, match=r"^value\['event'\]\.value\['a'\]\[1\]\[0\] is of type Foreign"):
        calls[call]()
    assert store.load("w") == {}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((1, 2), "the answer is of type tuple"),
        ({"a": [{"b": (1,)}]}, "the answer['a'][0]['b'] is of type tuple"),
        ({"size": Size.SMALL}, "the answer['size'] is of type Size"),
        ([uuid.UUID(int=7)], "the answer[0] is of type UUID"),
        ({"a": {1: "b"}}, "the answer['a'] has the key 1"),
        ({"a": [math.nan]}, "the answer['a'][0] is nan"),
        (["\ud83d\ude00"], "the answer[0] holds the halves of a surrogate pair"),
        ({"\ud83d\ude00": 1}, "the answer key holds the halves of a surrogate pair"),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [ExecutionRequest.resume, lambda answer: ExecutionRequest.signal("go", answer)])
def test_f5_an_answer_that_would_come_back_as_something_else_is_refused_by_its_path(make, answer, words) -> None:
    with pytest.raises(InputTranslationError) as refused:
        make(answer)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    "answer", [{"$": {"__type__": "x"}, "a": [1, 1.0, True, None, -0.0, 2**70, "é", "caf\ud83d"]}, [], {}, ""]
)
def test_f5_an_answer_is_itself_when_it_reaches_its_node(define, answer) -> None:
    def ask(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent([await_event("go"), await_event("on")])

    define(ask).run()
    define(ask).run(ExecutionRequest.signal("go", answer))
    # A node's second answer makes it read its first one from the store.
    assert shape(define(ask).run(ExecutionRequest.signal("on", answer)).execution.result) == shape([answer, answer])
