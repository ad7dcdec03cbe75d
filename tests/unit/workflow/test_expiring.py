"""A lease that ends early: only that of the attempt which is named, and its owner can write nothing more."""

import datetime as dt
from typing import Any

import pytest

from persistence import InMemoryPersistence
from workflow import Event, ExecutionRequest, Node, StopEvent, Workflow, WorkflowEngine, WorkflowRefusedError, WorkflowState
from workflow.expiring import expire_lease
from workflow.index import RunSummary

ID = "given-back"


class Begin(Event):
    """Begin."""


class Give(Node):
    """Runs what the test wants in mid-node."""

    step_name = "give"
    during: Any = None

    def __call__(self, event: Begin, state: WorkflowState) -> StopEvent:
        if self.during:
            Give.during()
        return StopEvent("done")


class Giving(Workflow[WorkflowState]):
    """One step under a long lease."""

    lease_timeout = 600
    retain_completion = True

    def start_event(self) -> Begin:
        return Begin()

    def nodes(self) -> tuple[Node, ...]:
        return (Give(),)


@pytest.fixture
def store() -> InMemoryPersistence:
    return InMemoryPersistence()


def run(store: InMemoryPersistence, monkeypatch: pytest.MonkeyPatch, during: Any) -> Any:
    monkeypatch.setattr(Give, "during", staticmethod(during))
    return Giving(ID, persistence=store).run(ExecutionRequest.start(run_id="run-1"))


def test_the_named_attempt_is_displaced_and_its_run_is_due_at_once(
    store: InMemoryPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def give_back() -> None:
        seen["expired"] = expire_lease(store, ID, "run-1", 1)
        seen["again"] = expire_lease(store, ID, "run-1", 1)
        seen["entry"] = store.entry(ID)

    with pytest.raises(WorkflowRefusedError):
        run(store, monkeypatch, give_back)

    assert (seen["expired"], seen["again"]) == (True, False)
    assert seen["entry"].due <= dt.datetime.now(dt.UTC).timestamp()
    assert RunSummary.of(seen["entry"]).run_id == "run-1"
    monkeypatch.setattr(Give, "during", None)
    taken = Giving(ID, persistence=store).run(ExecutionRequest.resume(expected_run_id="run-1"))
    assert (taken.execution.result, taken.execution.attempt) == ("done", 2)


def test_another_attempt_or_run_is_left_alone(store: InMemoryPersistence, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[bool] = []

    def try_others() -> None:
        refused.extend([expire_lease(store, ID, "run-1", 2), expire_lease(store, ID, "run-2", 1)])

    assert run(store, monkeypatch, try_others).execution.result == "done"
    assert refused == [False, False]


def test_a_run_that_is_settled_or_gone_is_left_alone(store: InMemoryPersistence, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not expire_lease(store, ID, "run-1", 1)
    run(store, monkeypatch, lambda: None)
    assert not expire_lease(store, ID, "run-1", 1)
    assert WorkflowEngine(store).inspect(ID) is not None
