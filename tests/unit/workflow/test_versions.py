"""Runs that another version of their definition began: continued where that is safe, refused before the claim elsewhere."""

from collections.abc import Callable
from typing import Any

import pytest

from workflow import (
    Event,
    ExecutionRequest,
    GraphError,
    Node,
    RefusalReason,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
)
from workflow.path import FOLD_AFTER


class Fetched(Event):
    pass


class Checked(Event):
    pass


class Other(Event):
    pass


class Loop(Event):
    number: int = 0


class HaltError(Exception):
    """Raised by a node to leave a failed run."""


def fetch(event: StartEvent, state: WorkflowState) -> Fetched:
    state["fetched"] = True
    return Fetched()


def check(event: Fetched, state: WorkflowState) -> Checked:
    return Checked()


def ask(event: Checked, state: WorkflowState) -> StopEvent:
    return StopEvent(await_event("go"))


ORIGINAL: list[Callable[..., Any]] = [fetch, check, ask]


def refused(store: Any, call: Callable[[], Any]) -> str:
    """The message of a refusal that changed nothing, not a byte."""
    before, entry = store.load("w"), store.entry("w")
    store.forget()
    with pytest.raises(WorkflowRefusedError) as caught:
        call()
    assert caught.value.reason is RefusalReason.INCOMPATIBLE_VERSION
    # A start finds out by an attempt to create that there is a run.
    assert {made.name for made in store.writes} <= {"initialize_if_absent"}
    assert (store.load("w"), store.entry("w")) == (before, entry)
    assert "Nothing was changed" in str(caught.value)
    return str(caught.value)


@pytest.fixture
def suspended(define):
    """Return what leaves a suspended run of the original definition."""
    return lambda **options: define(*ORIGINAL, **options).run(ExecutionRequest.start(run_id="r"))


@pytest.fixture
def failed(define):
    """Return what leaves a run that failed where `ask` stands."""

    def fail(event: Checked, state: WorkflowState) -> StopEvent:
        raise HaltError

    def make(**options: Any) -> None:
        with pytest.raises(HaltError):
            define(fetch, check, fail, **options).run(ExecutionRequest.start(run_id="r"))

    return make


ANSWER = ExecutionRequest.resume(1)


# --- declared versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("began", "now", "compatible", "continues"),
    [
        (None, None, (), True),
        (None, "2", (), True),
        ("1", None, (), True),
        ("1", "1", (), True),
        ("1", "2", ("1",), True),
        ("1", "2", ("0", "1"), True),
        ("1", "2", (), False),
        ("1", "2", ("0",), False),
        ("2", "1", (), False),
        ("1", "1.0", (), False),
        ("", "1", (), False),
    ],
)
def test_a_declared_version_continues_what_it_or_a_compatible_one_began(
    define, suspended, store, began, now, compatible, continues
) -> None:
    suspended(version=began)
    definition = define(*ORIGINAL, version=now, compatible_versions=compatible)
    if continues:
        assert definition.run(ANSWER).execution.result == 1
    else:
        message = refused(store, lambda: definition.run(ANSWER))
        assert f"version {began!r}" in message
        assert f"this is {now!r}" in message
        assert "compatible_versions" in message


def test_a_version_may_be_a_class_attribute_and_an_iterator_may_list_the_compatible_ones(define, suspended) -> None:
    class Versioned(Workflow):
        version = "2"
        compatible_versions = frozenset({"1"})

    suspended(version="1")
    assert define(*ORIGINAL, cls=Versioned).run(ANSWER).execution.result == 1
    definition = define(*ORIGINAL, version="2").reconfigure(compatible_versions=(one for one in ["1"]))
    for _ in range(2):
        suspended(version="1")
        assert definition.run(ANSWER).execution.result == 1


@pytest.mark.parametrize("call", ["answer", "resume", "events", "run", "take over", "begin"])
def test_whatever_claims_a_run_is_asked_for_its_version(define, suspended, failed, store, call, process_death) -> None:
    options: dict[str, Any] = {"version": "1"}
    match call:
        case "answer" | "events":
            suspended(**options)
        case "run" | "resume":
            failed(**options)
        case "begin":
            define(*ORIGINAL, **options).ignite()
        case _:
            store.die_at(2, "before")
            with pytest.raises(process_death):
                suspended(**options)
            store.before = lambda made: None
    definition = define(*ORIGINAL, version="2")
    calls: dict[str, Callable[[], Any]] = {
        "answer": lambda: definition.run(ANSWER),
        "events": lambda: next(definition.events(ANSWER)),
        "run": definition.run,
        "resume": lambda: definition.run(ExecutionRequest.resume()),
        "take over": lambda: definition.run(ExecutionRequest.resume()),
        "begin": lambda: definition.run(ExecutionRequest.resume()),
    }
    refused(store, calls[call])


def test_what_claims_nothing_is_not_asked(define, suspended, store) -> None:
    """Polls, kept outcomes, and everything that settles a run from outside."""
    suspended(version="1")
    definition = define(fetch, version="2", retain_completion=True)
    assert definition.run(ExecutionRequest.resume()).is_interrupted()
    define(*ORIGINAL, version="1", retain_completion=True).run(ANSWER)
    assert definition.run(ExecutionRequest.resume()).execution.result == 1
    definition.acknowledge("r")
    suspended(version="1")
    assert definition.cancel("r") is True
    assert definition.abandon("r") is True


def test_a_new_start_is_not_asked_and_a_superseded_run_neither(define, failed, store) -> None:
    failed(version="1")
    definition = define(*ORIGINAL, version="2")
    refused(store, definition.run)
    assert definition.run(ExecutionRequest.start()).is_interrupted()
    assert definition.run(ANSWER).execution.result == 1


def test_the_version_stays_the_one_that_began_the_run(define, failed, store) -> None:
    failed(version="1")
    with_both = define(*ORIGINAL, version="2", compatible_versions=["1"])
    assert with_both.run().is_interrupted()
    assert define(*ORIGINAL, version="1").run(ANSWER).execution.result == 1


# --- structure --------------------------------------------------------------------------------------------------------------


class Renamed(Node):
    def __call__(self, event: Fetched, state: WorkflowState) -> Checked:
        return Checked()


class Kept(Renamed):
    step_name = "check"


def begin_otherwise(event: Other, state: WorkflowState) -> Fetched:
    return Fetched()


def fetch_otherwise(event: StartEvent, state: WorkflowState) -> Other:
    return Other()


def take_over(event: Fetched, state: WorkflowState) -> Other:
    return Other()


class FetchOtherwise(Node):
    step_name = "fetch"

    def __call__(self, event: StartEvent, state: WorkflowState) -> Other:
        return Other()


class CheckLater(Node):
    step_name = "check"

    def __call__(self, event: Other, state: WorkflowState) -> Checked:
        return Checked()


class AskUnderAnotherName(Node):
    def __call__(self, event: Checked, state: WorkflowState) -> StopEvent:
        return StopEvent(self.await_event("go"))


INCOMPATIBLE: dict[str, tuple[list[Any], list[str]]] = {
    "a renamed node": ([fetch, Renamed(), ask], ["step 1 was made by 'check'", "Fetched is handled by 'Renamed' now"]),
    "a removed node": ([fetch, ask], ["step 1 was made by 'check'", "Fetched is handled by no node any more"]),
    "a removed first node": ([begin_otherwise, check, ask], ["step 0 was made by 'fetch'", "StartEvent is handled by no node"]),
    "a node put before a settled one": (
        [fetch, take_over, CheckLater(), ask],
        ["step 1 was made by 'check'", "Fetched is handled by 'take_over' now"],
    ),
}
"""What a run does not survive once it is past `check`, wherever it stands, and what the refusal says."""

COMPATIBLE: dict[str, list[Any]] = {
    "nothing changed": ORIGINAL,
    "another order in the list": [ask, check, fetch],
    "a renamed class that keeps its step name": [fetch, Kept(), ask],
    "nodes that are added": [*ORIGINAL, begin_otherwise],
    "a node put behind a settled one that keeps its name": [FetchOtherwise(), begin_otherwise, check, ask],
}
"""What it does survive."""


@pytest.mark.parametrize("change", INCOMPATIBLE)
@pytest.mark.parametrize("stands", ["suspended", "failed"])
def test_a_changed_path_is_refused_before_the_claim_and_named(define, suspended, failed, store, change, stands) -> None:
    nodes, words = INCOMPATIBLE[change]
    if stands == "suspended":
        suspended()
        message = refused(store, lambda: define(*nodes).run(ANSWER))
    else:
        failed()
        # Failed in a node of another name, which is settled nowhere.
        message = refused(store, define(*nodes).run)
    assert [word for word in words if word not in message] == []
    assert define(*ORIGINAL).run(ANSWER if stands == "suspended" else None) is not None


@pytest.mark.parametrize("change", COMPATIBLE)
@pytest.mark.parametrize("stands", ["suspended", "failed"])
def test_whatever_else_is_changed_continues(define, suspended, failed, change, stands) -> None:
    definition = define(*COMPATIBLE[change])
    if stands == "suspended":
        suspended()
    else:
        failed()
        assert definition.run().is_interrupted()
    state = definition.run(ANSWER)
    assert (state.execution.result, state.execution.run_id, state["fetched"]) == (1, "r", True)


def test_the_event_that_comes_next_needs_a_node(define, suspended, failed, store) -> None:
    failed()
    assert "no node handles Checked, the event of step 2" in refused(store, define(fetch, check).run)
    define().abandon()
    suspended()
    assert "no node handles Checked" in refused(store, lambda: define(fetch, check).run(ANSWER))


def test_a_run_that_waits_needs_the_node_that_waited_while_a_failed_one_takes_any(define, suspended, failed, store) -> None:
    definition = define(fetch, check, AskUnderAnotherName())
    suspended()
    message = refused(store, lambda: definition.run(ANSWER))
    assert "it waits in step 'ask-2'" in message
    assert "'AskUnderAnotherName'" in message
    define().abandon()
    failed()
    assert definition.run().is_interrupted()
    assert definition.run(ANSWER).execution.result == 1


def test_a_pending_run_needs_a_node_for_its_event_only(define, store) -> None:
    define(*ORIGINAL).ignite(run_id="r")
    message = refused(store, lambda: define(begin_otherwise, check, ask).run(ExecutionRequest.resume()))
    assert "no node handles StartEvent, the event of step 0" in message
    assert define(fetch_otherwise, begin_otherwise, check, ask).run(ExecutionRequest.resume()).is_interrupted()


def test_another_start_event_of_the_definition_is_of_no_matter_to_runs_that_began_before(define, suspended) -> None:
    suspended()
    definition = define(*ORIGINAL, begin_otherwise, start_event=Other())
    assert definition.run(ANSWER).execution.result == 1


def test_a_start_event_that_cannot_be_made_any_more_is_not_asked_for_on_a_continuation(define, suspended) -> None:
    class FromId(Workflow):
        def start_event(self):
            raise HaltError

    suspended()
    definition = define(*ORIGINAL, cls=FromId)
    assert definition.run(ANSWER).execution.result == 1
    with pytest.raises(HaltError):
        definition.run()
    assert definition.inspect() is None
    assert definition.run(ExecutionRequest.start(StartEvent())).is_interrupted()


# --- broken definitions -----------------------------------------------------------------------------------------------------


def unannotated(event, state):
    return StopEvent()


def test_a_definition_that_is_broken_fails_the_run_after_the_claim_like_any_graph_error(define, suspended) -> None:
    suspended()
    with pytest.raises(GraphError, match="unannotated"):
        define(*ORIGINAL, unannotated).run(ANSWER)
    seen = define().inspect()
    assert (seen.status, seen.execution_attempt, seen.input_accepted) == (WorkflowStatus.FAILED, 2, True)
    assert define(*ORIGINAL).run().execution.result == 1


def test_so_does_a_hook_that_raises(define, suspended) -> None:
    class Broken(Workflow):
        def nodes(self):
            raise HaltError

    suspended()
    with pytest.raises(HaltError):
        define(cls=Broken).run(ANSWER)
    assert define().inspect().status is WorkflowStatus.FAILED
    assert define(*ORIGINAL).run().execution.result == 1


def test_a_broken_definition_of_another_version_is_still_refused_by_its_version(define, suspended, store) -> None:
    suspended(version="1")
    refused(store, lambda: define(*ORIGINAL, unannotated, version="2").run(ANSWER))


# --- folded runs ------------------------------------------------------------------------------------------------------------


def step(event: Loop, state: WorkflowState) -> Loop | Checked:
    return Loop(number=event.number + 1) if event.number < FOLD_AFTER + 10 else Checked()


class StepAnew(Node):
    def __call__(self, event: Loop, state: WorkflowState) -> Loop | Checked:
        return Checked()


class Halting(Node):
    """Handles the loop under the old name up to the fold, and fails there."""

    step_name = "step"

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, event: Loop, state: WorkflowState) -> Loop | Checked:
        if event.number == self.at:
            raise HaltError
        return Loop(number=event.number + 1)


def test_of_a_folded_run_only_what_is_behind_the_fold_must_fit(define, store) -> None:
    with pytest.raises(HaltError):
        define(Halting(FOLD_AFTER), ask, start_event=Loop(), version="1").run()
    # Every settled step is folded: the event that comes next is all that is asked about.
    refused(store, define(step, ask, start_event=Loop(), version="2").run)
    refused(store, define(ask, start_event=Loop()).run)
    assert define(StepAnew(), ask, start_event=Loop()).run().is_interrupted()
    assert define(StepAnew(), ask, start_event=Loop()).run(ANSWER).execution.result == 1


def test_a_changed_step_behind_the_fold_is_refused(define, store) -> None:
    with pytest.raises(HaltError):
        define(Halting(FOLD_AFTER + 3), ask, start_event=Loop()).run()
    message = refused(store, define(StepAnew(), ask, start_event=Loop()).run)
    assert f"step {FOLD_AFTER} was made by 'step'" in message
    assert define(step, ask, start_event=Loop()).run().is_interrupted()
    assert "it waits in step 'ask-" in refused(store, lambda: define(step, AskUnderAnotherName()).run(ANSWER))
    assert define(step, ask).run(ANSWER).execution.result == 1


@pytest.mark.parametrize("version", [None, "2"])
def test_the_snapshot_names_the_version_that_the_run_began_with(define, version) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    definition = define(begin, version=version)
    definition.ignite()

    assert definition.reconfigure(version="3").inspect().version == version
