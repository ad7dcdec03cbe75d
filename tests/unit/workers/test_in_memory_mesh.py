"""`InMemoryRuntime`: what a whole mesh does with a run happens in one process, as far as the time that the test has reached."""

import asyncio
import datetime as dt

import pytest

from mesh.testing import ScriptedAgentFactory
from workers import MeshClient, register
from workers.testing import InMemoryRuntime
from workflow import (
    ActivityStreamEvent,
    Event,
    JsonStreamAdapter,
    ManualClock,
    RetryPolicy,
    StopEvent,
    Workflow,
    WorkflowState,
    WorkflowStatus,
    await_event,
    emit,
    sleep_until,
)

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


class Go(Event):
    pass


def stop(event: Go, state: WorkflowState) -> StopEvent:
    return StopEvent()


class Mesh:
    def __init__(self) -> None:
        self.clock = ManualClock(NOON)
        agents = ScriptedAgentFactory({"research": "news", "operations": "all is well", "briefing": "good morning"})
        self.runtime = InMemoryRuntime(agents=agents, clock=self.clock)
        self.client = MeshClient(runtime=self.runtime)

    def runs(self, node, **options) -> None:
        register("tried", lambda workflow_id: Workflow(workflow_id, nodes=[node], start_event=Go(), retain_for=60, **options))

    def status(self, workflow_id: str) -> WorkflowStatus | None:
        found = self.runtime.engine.inspect(workflow_id)
        return None if found is None else found.status


@pytest.fixture
def mesh() -> Mesh:
    return Mesh()


def test_a_signal_reaches_the_runs_that_waited_when_it_was_published(mesh) -> None:
    def wait(event: Go, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event("paid", match={"ok": True})["by"])

    mesh.runs(wait)
    early = mesh.client.start("tried", "early")
    mesh.runtime.work()
    mesh.runtime.signals.publish("1", "paid", {"ok": False, "by": "nobody"})
    mesh.runtime.work()
    assert mesh.status("early") is WorkflowStatus.SUSPENDED
    mesh.runtime.signals.publish("2", "paid", {"ok": True, "by": "Ada"})
    late = mesh.client.start("tried", "late")
    mesh.runtime.work()
    assert (early.wait(0).result, late.wait(0).status) == ("Ada", WorkflowStatus.SUSPENDED)
    mesh.runtime.signals.publish("3", "paid", {"ok": True, "by": "Bob"})
    mesh.runtime.work()
    assert late.wait(0).result == "Bob"


def test_a_timer_ends_when_the_clock_is_turned_and_not_before(mesh) -> None:
    def rest(event: Go, state: WorkflowState) -> StopEvent:
        sleep_until(NOON + dt.timedelta(days=400))
        return StopEvent("rested")

    mesh.runs(rest)
    run = mesh.client.start("tried", "one")
    mesh.runtime.work()
    mesh.clock.advance(399 * 86400)
    assert mesh.runtime.work() == 0
    mesh.clock.advance(86400)
    assert mesh.runtime.work() == 1
    assert run.wait(0).result == "rested"


def test_a_failed_run_is_tried_again_when_its_policy_says_so(mesh) -> None:
    tries = []

    def fail_twice(event: Go, state: WorkflowState) -> StopEvent:
        tries.append(mesh.clock.now())
        if len(tries) < 3:
            raise ConnectionError("the mill does not answer")
        return StopEvent("milled")

    mesh.runs(fail_twice, retry=RetryPolicy(first_delay=60, factor=2, jitter=0))
    run = mesh.client.start("tried", "one")
    for _ in range(4):
        mesh.runtime.work()
        mesh.clock.advance(60)
    assert run.wait(0).result == "milled"
    assert [(one - NOON).total_seconds() for one in tries] == [0, 60, 180]


def test_a_run_that_fails_for_good_is_told_on_the_bus_and_taken_up_when_a_person_says_so(mesh) -> None:
    broken = [True]

    def work(event: Go, state: WorkflowState) -> StopEvent:
        if broken:
            raise ValueError("no flour")
        return StopEvent("baked")

    mesh.runs(work)
    run = mesh.client.start("tried", "one")
    mesh.runtime.work()
    assert mesh.status("one") is WorkflowStatus.FAILED
    assert [signal.topic for signal in mesh.runtime.signals.read(["workflow.failed"])] == ["workflow.failed"]
    broken.clear()
    mesh.client.retry("one")
    mesh.runtime.work()
    assert run.wait(0).result == "baked"


def test_a_kept_result_goes_when_its_time_is_over(mesh) -> None:
    mesh.runs(stop)
    mesh.client.start("tried", "one")
    mesh.runtime.work()
    assert mesh.status("one") is WorkflowStatus.COMPLETED
    mesh.clock.advance(61)
    mesh.runtime.work()
    assert mesh.status("one") is None


def test_the_frames_of_a_run_are_noted(mesh) -> None:
    def show(event: Go, state: WorkflowState) -> StopEvent:
        emit(ActivityStreamEvent("1", "progress", {"percent": 50}))
        return StopEvent()

    mesh.runs(show, stream_adapter=JsonStreamAdapter)
    mesh.client.start("tried", "one")
    mesh.runtime.work()
    assert [frame.type for frame in mesh.runtime.frames] == ["run.started", "progress", "run.ended", "stream.completed"]


def test_the_meshs_own_workflows_run_too(mesh) -> None:
    run = mesh.client.enqueue_briefing()
    mesh.runtime.work()
    assert run.workflow_id == "jarvis-briefing-2026-11-30"
    assert run.wait(0).status is WorkflowStatus.COMPLETED
    assert mesh.runtime.knowledge.get("briefing/2026-11-30/final")


def test_without_agents_of_the_test_a_briefing_is_written_by_rule() -> None:
    runtime = InMemoryRuntime()
    run = MeshClient(runtime=runtime).enqueue_briefing()
    runtime.work()
    assert run.wait(0).status is WorkflowStatus.COMPLETED


def test_runs_are_listed_by_tag_page_by_page(mesh) -> None:
    mesh.runs(stop)
    for number in range(5):
        mesh.client.start("tried", f"run:{number}", tag="odd" if number % 2 else "even")
    first = mesh.client.runs(tag="even", limit=2)
    assert [entry.partition for entry in first] == ["run:0", "run:2"]
    assert [entry.partition for entry in mesh.client.runs(tag="even", after=first[-1])] == ["run:4"]


def test_the_same_on_a_loop(mesh) -> None:
    mesh.runs(stop)
    mesh.client.start("tried", "run:0", tag="even")
    assert [entry.partition for entry in asyncio.run(mesh.client.aio.runs(tag="even", limit=1))] == ["run:0"]
    views = asyncio.run(mesh.client.aio.schedules())
    assert [view.name for view in views] == [view.name for view in mesh.client.schedules()]
