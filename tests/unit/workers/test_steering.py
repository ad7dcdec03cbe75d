"""`MeshClient` steers runs: answers to the question that was seen, and what becomes of failed, parked and ended runs."""

import asyncio
import datetime as dt
import threading
import time
from typing import Any

import pytest

from workers import MeshClient, register
from workers.testing import InMemoryRuntime
from workflow import (
    ApprovalRequest,
    Event,
    ExecutionRequest,
    RefusalReason,
    RetryPolicy,
    RunStalledError,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
    await_event,
    interrupt,
)


class Go(Event):
    pass


class Mesh:
    """A client, and the worker that a test is. ``errors`` are raised one after the other."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.client = MeshClient(runtime=InMemoryRuntime())

    def workflow(self, workflow_id: str, **options: Any) -> Workflow:
        def ask(event: Go, state: WorkflowState) -> StopEvent:
            if self.errors:
                raise self.errors.pop(0)
            if workflow_id.startswith("asks"):
                return StopEvent([await_event("go"), await_event("go")])
            if workflow_id.startswith("approves"):
                return StopEvent(interrupt(ApprovalRequest("really?")))
            return StopEvent("done")

        return Workflow(workflow_id, nodes=[ask], start_event=Go(), resources=WorkflowResources(), **options)

    def start(self, workflow_id: str, name: str = "plain") -> str:
        run_id = self.client.start(name, workflow_id).run_id
        self.work(workflow_id)
        return run_id

    def work(self, workflow_id: str) -> None:
        entry = self.client.runtime.store.entry(workflow_id)
        assert entry is not None
        try:
            self.client.runtime.definition(entry.name, workflow_id).run(ExecutionRequest.resume())
        except (ValueError, RunStalledError):
            return

    def status(self, workflow_id: str) -> WorkflowStatus:
        snapshot = self.client.runtime.engine.inspect(workflow_id)
        assert snapshot is not None
        return snapshot.status

    @property
    def hints(self) -> list[tuple[str, str, str]]:
        return self.client.runtime.hints.sent  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture
def mesh() -> Mesh:
    made = Mesh()
    register("plain", lambda workflow_id: made.workflow(workflow_id))
    register("kept", lambda workflow_id: made.workflow(workflow_id, retain_completion=True))
    register("patient", lambda workflow_id: made.workflow(workflow_id, retry=RetryPolicy(first_delay=3600, jitter=0)))
    return made


def test_an_answer_is_recorded_and_hinted_and_not_executed(mesh: Mesh) -> None:
    run_id = mesh.start("asks:1")
    assert mesh.client.answer("asks:1", "one", run_id=run_id, interrupt_id=1)
    assert mesh.hints[-1] == ("plain", "asks:1", run_id)
    assert mesh.status("asks:1") is WorkflowStatus.SUSPENDED
    mesh.work("asks:1")
    assert mesh.client.answer("asks:1", "two", run_id=run_id, interrupt_id=2)


def test_a_second_click_on_question_1_never_answers_question_2(mesh: Mesh) -> None:
    run_id = mesh.start("asks:1")
    mesh.client.answer("asks:1", "one", run_id=run_id, interrupt_id=1)
    assert not mesh.client.answer("asks:1", "one", run_id=run_id, interrupt_id=1)
    mesh.work("asks:1")
    with pytest.raises(WorkflowRefusedError) as refusal:
        mesh.client.answer("asks:1", "one", run_id=run_id, interrupt_id=1)
    assert refusal.value.reason is RefusalReason.NOT_AWAITED
    assert len([hint for hint in mesh.hints if hint[1] == "asks:1"]) == 2  # the start, and the one answer


def test_an_answer_to_an_earlier_run_is_stale(mesh: Mesh) -> None:
    first = mesh.start("asks:1")
    mesh.client.cancel("asks:1", run_id=first)
    mesh.start("asks:1")
    with pytest.raises(WorkflowRefusedError) as refusal:
        mesh.client.answer("asks:1", "one", run_id=first, interrupt_id=1)
    assert refusal.value.reason is RefusalReason.STALE_RUN


def test_no_answer_at_all_is_an_empty_one(mesh: Mesh) -> None:
    run_id = mesh.start("asks:1")
    assert mesh.client.answer("asks:1", None, run_id=run_id, interrupt_id=1)


def test_an_approval_answers_nothing_but_an_approval(mesh: Mesh) -> None:
    run_id = mesh.start("approves:1")
    assert mesh.client.approve("approves:1", {"a": "approve"}, run_id=run_id, interrupt_id=1)
    other = mesh.start("asks:1")
    with pytest.raises(WorkflowRefusedError, match="approval"):
        mesh.client.approve("asks:1", {}, run_id=other, interrupt_id=1)


def test_an_event_reaches_the_run_that_waits_for_it(mesh: Mesh) -> None:
    mesh.start("asks:1")
    assert mesh.client.signal("asks:1", "go", 1)
    mesh.work("asks:1")
    with pytest.raises(WorkflowRefusedError, match="does not wait for the event 'stop'"):
        mesh.client.signal("asks:1", "stop", 1)


def test_a_run_whose_workflow_is_not_registered_here_can_be_answered(mesh: Mesh) -> None:
    mesh.workflow("asks:1").reconfigure(name="elsewhere", persistence=mesh.client.runtime.store).run()
    assert mesh.client.signal("asks:1", "go", 1)
    assert mesh.client.cancel("asks:1")


def test_waiting_goes_on_while_a_recorded_answer_waits_for_a_worker(mesh: Mesh) -> None:
    handle = mesh.client.start("kept", "approves:1")
    mesh.work("approves:1")
    assert handle.wait(0).status is WorkflowStatus.SUSPENDED
    mesh.client.approve("approves:1", "yes", run_id=handle.run_id, interrupt_id=1)
    assert handle.wait(60, look=lambda: mesh.work("approves:1")).result == "yes"


def test_waiting_goes_on_while_a_failed_run_is_to_be_tried_again(mesh: Mesh) -> None:
    mesh.errors = [ValueError("ill")]
    handle = mesh.client.start("patient", "a:1")
    mesh.work("a:1")
    assert mesh.status("a:1") is WorkflowStatus.FAILED
    assert handle.wait(60, look=lambda: mesh.work("a:1")).status is WorkflowStatus.COMPLETED


@pytest.mark.parametrize("name", ["plain", "patient"])
def test_a_failed_run_is_due_now_when_it_is_retried(mesh: Mesh, name: str) -> None:
    mesh.errors = [ValueError("ill")]
    run_id = mesh.start("a:1", name)
    assert mesh.client.retry("a:1")
    entry = mesh.client.runtime.store.entry("a:1")
    assert entry is not None
    assert entry.due is not None
    assert entry.due < time.time() + 60
    assert mesh.hints[-1] == (name, "a:1", run_id)
    assert not mesh.client.retry("a:1", run_id="another")
    assert not mesh.client.retry("nowhere")


def test_a_parked_run_is_released_by_retry_with_all_its_takeovers(mesh: Mesh) -> None:
    run_id = mesh.client.start("plain", "a:1").run_id
    for _ in range(mesh.client.runtime.settings.max_takeovers + 1):
        _lose_a_worker(mesh, "a:1")
    mesh.work("a:1")
    assert (mesh.status("a:1"), mesh.client.past_runs(workflow_id="a:1")[0].error) == (WorkflowStatus.FAILED, "RunStalledError")
    assert [signal.topic for signal in mesh.client.runtime.signals.read()] == ["workflow.stalled"]

    assert mesh.client.retry("a:1", run_id=run_id)
    mesh.work("a:1")

    assert [run.status for run in mesh.client.past_runs(workflow_id="a:1")] == ["completed"]


def _lose_a_worker(mesh: Mesh, workflow_id: str) -> None:
    """Claim the run as a worker does that is never heard of again, and let its lease end."""
    import json

    store = mesh.client.runtime.store
    control = store.get(workflow_id, "__control")
    assert control is not None
    record = json.loads(control)
    record["trials"] = [0, record.get("trials", [0, -1, None])[1] + 1, None]
    record.update(status="running", attempt=record["attempt"] + 1, lease=1)
    assert store.write_if_unchanged(workflow_id, "__control", control, {"__control": json.dumps(record).encode()})


def test_what_happened_is_told_when_the_run_has_gone(mesh: Mesh) -> None:
    mesh.errors = [ValueError("ill")]
    first = mesh.start("a:1")
    mesh.work("a:1")
    second = mesh.start("a:1")
    told = mesh.client.history("a:1", run_id=first)
    assert [line.kind.value for line in told] == ["started", "claimed", "failed", "claimed", "completed"]
    assert {line.run_id for line in mesh.client.history("a:1")} == {second}
    assert mesh.client.history("nowhere") == []
    assert [run.run_id for run in mesh.client.past_runs()] == [second, first]
    assert mesh.client.remembers("a:1", first)
    assert not mesh.client.remembers("a:1", "another")


def test_past_runs_are_asked_for_by_moments(mesh: Mesh) -> None:
    mesh.start("a:1")
    now = dt.datetime.now(dt.UTC)
    assert len(mesh.client.past_runs(since=now - dt.timedelta(hours=1), until=now)) == 1
    assert mesh.client.past_runs(since=now) == []


def test_a_run_is_discarded(mesh: Mesh) -> None:
    run_id = mesh.start("asks:1")
    assert mesh.client.abandon("asks:1", run_id=run_id)
    assert not mesh.client.abandon("asks:1")
    assert [run.status for run in mesh.client.past_runs()] == ["abandoned"]


def test_a_cancelled_run_is_kept_where_its_definition_keeps_what_ends(mesh: Mesh) -> None:
    mesh.client.start("kept", "a:1")
    assert mesh.client.cancel("a:1")
    assert mesh.status("a:1") is WorkflowStatus.CANCELLED
    assert not mesh.client.retry("a:1")


def test_an_application_consumes_signals(mesh: Mesh) -> None:
    heard: list[str] = []
    mesh.client.runtime.signals.publish("s1", "briefing.ready", {})
    mesh.client.runtime.signals.publish("s2", "research.completed", {})
    assert mesh.client.subscribe("app", ["briefing.*"], lambda signal: heard.append(signal.id)).drain() >= 1
    assert heard == ["s1"]


def test_everything_can_be_done_from_an_event_loop(mesh: Mesh) -> None:
    async def use() -> tuple[Any, ...]:
        client = mesh.client.aio
        handle = await client.start("kept", "approves:1")
        await asyncio.to_thread(mesh.work, "approves:1")
        await client.approve("approves:1", "yes", run_id=handle.run_id, interrupt_id=1)
        await asyncio.to_thread(mesh.work, "approves:1")
        result = await client.wait(handle, 0)
        return result.result, [run.status for run in await client.past_runs()], len(await client.history("approves:1"))

    assert asyncio.run(use()) == ("yes", ["completed"], 6)


def test_looking_at_once_from_many_threads_tells_everything_once(mesh: Mesh) -> None:
    mesh.errors = [ValueError("ill")]
    mesh.start("a:1")
    threads = [threading.Thread(target=mesh.client.history, args=("a:1",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.kind.value for line in mesh.client.history("a:1")] == ["started", "claimed", "failed"]
    assert [signal.topic for signal in mesh.client.runtime.signals.read()] == ["workflow.failed"]
