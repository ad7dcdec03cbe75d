"""A hint is followed once there is a slot; one that comes twice takes no slot from anybody."""

import time

import pytest

from workers import MeshClient, Settings, register
from workers.segments import run_segment
from workers.testing import InMemoryRuntime
from workflow import Event, Node, RetryPolicy, StopEvent, Workflow, WorkflowResources, WorkflowState, WorkflowStatus
from workflow.index import postpone


class Go(Event):
    pass


class Crew:
    """Workers in one process, and what their nodes do in the middle."""

    def __init__(self) -> None:
        self.runtime = InMemoryRuntime(Settings.load(limits={"workflows": {"limited": 1}}))
        self.client = MeshClient(runtime=self.runtime)
        self.begun: list[str] = []
        self.meanwhile = {}
        self.retry: RetryPolicy | None = None
        register("limited", self.definition)

    def definition(self, workflow_id: str) -> Workflow:
        crew = self

        class Work(Node):
            def __call__(self, event: Go, state: WorkflowState) -> StopEvent:
                crew.begun.append(workflow_id)
                crew.meanwhile.get(workflow_id, lambda: None)()
                return StopEvent()

        made = Workflow(workflow_id, nodes=[Work()], start_event=Go(), resources=WorkflowResources(), retain_completion=True)
        return made.reconfigure(retry=self.retry)

    def work(self, run) -> None:
        """Follow the hint of a run."""
        run_segment(self.runtime, "limited", run.workflow_id, run.run_id)


@pytest.fixture
def crew() -> Crew:
    return Crew()


def test_a_segment_without_a_slot_leaves_its_run_due_a_moment_later(crew) -> None:
    first, second = (crew.client.start("limited", name) for name in ("one", "two"))
    crew.meanwhile["one"] = lambda: crew.work(second)
    before = crew.runtime.store.entry("two").due
    crew.work(first)
    assert crew.begun == ["one"]
    assert crew.runtime.store.entry("two").due < before
    assert second.snapshot().status is WorkflowStatus.PENDING
    crew.work(second)
    assert crew.begun == ["one", "two"]


def test_a_hint_that_comes_twice_takes_no_slot_from_the_segment_that_runs(crew) -> None:
    first, second = (crew.client.start("limited", name) for name in ("one", "two"))

    def twice_and_another() -> None:
        crew.work(first)
        crew.work(second)

    crew.meanwhile["one"] = twice_and_another
    crew.work(first)
    assert crew.begun == ["one"]
    assert first.snapshot().status is WorkflowStatus.COMPLETED


def test_a_hint_that_comes_twice_does_not_try_again_what_has_failed_for_good(crew) -> None:
    crew.meanwhile["one"] = fail
    run = crew.client.start("limited", "one")
    crew.work(run)
    crew.work(run)
    assert crew.begun == ["one"]
    assert run.snapshot().execution_attempt == 1


def test_a_failed_run_is_tried_again_when_somebody_asks_for_it(crew) -> None:
    crew.meanwhile["one"] = fail
    run = crew.client.start("limited", "one")
    crew.work(run)
    assert crew.client.retry("one")
    crew.work(run)
    assert crew.begun == ["one"] * 2


def test_a_hint_that_comes_twice_does_not_shorten_what_a_policy_waits(crew) -> None:
    crew.meanwhile["one"] = fail
    crew.retry = RetryPolicy(first_delay=60)
    run = crew.client.start("limited", "one")
    crew.work(run)
    crew.work(run)
    assert crew.begun == ["one"]

    postpone(crew.runtime.store, "one", time.time() + 60)  # the sweeper, a minute later
    crew.work(run)

    assert crew.begun == ["one"] * 2


def fail() -> None:
    raise ValueError("ill")
