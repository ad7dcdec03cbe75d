"""Runs that another version of their definition began: continued where that is safe, refused before the claim where it is not."""

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
    assert store.writes == []
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


def rechecked(event: Fetched, state: WorkflowState) -> Other:
    return Other()


def between(event: Other, state: WorkflowState) -> Checked:
    return Checked()


def ask_otherwise(event: Checked, state: WorkflowState) -> StopEvent:
    return StopEvent("otherwise")


def start_otherwise(event: Other, state: WorkflowState) -> Fetched:
    return Fetched()


class LoopEnds(Node):
    step_name = "other"

    def __call__(self, event: Other, state: WorkflowState) -> StopEvent:
        return StopEvent()


INCOMPATIBLE: dict[str, tuple[list[Any], list[str]]] = {
    "a renamed node": ([fetch, Renamed(), ask], ["step 1 was made by 'check'", "Fetched is handled by 'Renamed' now"]),
    "a removed node": ([fetch, ask], ["step 1 was made by 'check'", "Fetched is handled by no node any more"]),
    "the waiting node removed": ([fetch, check], ["no node handles Checked, the event of step 2"]),
    "another start event": ([start_otherwise, check, ask], ["step 0 was made by 'fetch'", "StartEvent is handled by no node"]),
    "nodes that change places": (
        [ask, check, type("Fetch", (Node,), {"step_name": "fetch2", "__call__": fetch_again})() if False else check][:0]
        + [check, ask],
        ["step 0 was made by 'fetch'"],
    ),
}
