"""`MeshClient` on stores in memory: what a start finds, and what waiting says."""

import datetime as dt

import pytest

from workers import MeshClient, RunResult, register
from workers.client.editions import latest_edition, reserved_run_id
from workers.testing import InMemoryRuntime
from workflow import (
    Event,
    ExecutionRequest,
    JsonSerializer,
    Node,
    SealedSerializer,
    StopEvent,
    Workflow,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
)

DATE = dt.date(2026, 11, 30)


class Order(Event):
    item: str = "flour"


class Ship(Node):
    def __call__(self, event: Order, state: WorkflowState) -> StopEvent:
        if event.item == "nothing":
            raise ValueError("nothing to ship")
        return StopEvent(event.item)


class Orders(Workflow):
    lease_timeout = 60

    def start_event(self) -> Order:
        return Order()

    def resources(self) -> WorkflowResources:
        return WorkflowResources()

    def nodes(self) -> list[Node]:
        return [Ship()]


@pytest.fixture
def client() -> MeshClient:
    register("orders", Orders)
    register("kept-orders", lambda workflow_id: Orders(workflow_id, retain_completion=True))
    return MeshClient(runtime=InMemoryRuntime())


def execute(client: MeshClient, name: str, workflow_id: str) -> None:
    client.runtime.definition(name, workflow_id).run(ExecutionRequest.resume())


def test_a_start_is_recorded_and_hinted_and_a_second_one_finds_it(client: MeshClient) -> None:
    first, second = (client.start("orders", "order:1") for _ in range(2))

    assert (first.created, second.created) == (True, False)
    assert first.run_id == second.run_id
    assert client.runtime.hints.sent == [("orders", "order:1", first.run_id)]


def test_waiting_returns_the_kept_result(client: MeshClient) -> None:
    handle = client.start("kept-orders", "order:1", Order(item="rye"))
    execute(client, "kept-orders", "order:1")

    result = handle.wait(0)

    assert (result.status, result.result) == (WorkflowStatus.COMPLETED, "rye")


@pytest.mark.parametrize(
    ("ends", "status"),
    [("completes", WorkflowStatus.COMPLETED), ("cancel", WorkflowStatus.CANCELLED), ("abandon", None)],
)
def test_of_a_run_that_has_gone_its_history_says_how_it_ended(
    client: MeshClient, ends: str, status: WorkflowStatus | None
) -> None:
    handle = client.start("orders", "order:1")
    if ends == "completes":
        execute(client, "orders", "order:1")
    else:
        getattr(client, ends)("order:1")

    assert handle.wait(0) == RunResult(status)


def test_of_a_sealed_run_the_client_sees_what_it_sees_of_others(client: MeshClient) -> None:
    sealed = SealedSerializer(JsonSerializer(), {"1": b"k" * 32})
    register("sealed-orders", lambda workflow_id: Orders(workflow_id, serializer=sealed))
    handle = client.start("sealed-orders", "order:1", Order(item="nothing"))
    with pytest.raises(ValueError, match="nothing to ship"):
        execute(client, "sealed-orders", "order:1")

    failed = handle.wait(0)
    assert (failed.status, str(failed.failure)) == (WorkflowStatus.FAILED, "ValueError: nothing to ship")
    assert client.inspect("order:1") == handle.snapshot()
    assert [line.kind.value for line in client.history("order:1")] == ["started", "claimed", "failed"]
    assert client.runtime.signals.read(["workflow.failed"])[0].payload["error"] == "ValueError"
    assert client.abandon("order:1")


def test_of_a_run_that_has_gone_and_is_not_remembered_nobody_says_how_it_ended(client: MeshClient) -> None:
    handle = client.start("orders", "order:1")
    execute(client, "orders", "order:1")
    assert client.history("order:1")
    archive = client.runtime.archive
    assert [archive.forget(entry) for entry in archive.page(None, 10)] == [True]

    assert handle.wait(0) == RunResult(None)


def test_a_start_finds_a_cancelled_run_that_is_kept(client: MeshClient) -> None:
    first = client.start("orders", "order:1")
    client.runtime.engine.cancel("order:1", retain=True)

    found = client.start("orders", "order:1")

    assert (found.created, found.run_id, found.wait(0).status) == (False, first.run_id, WorkflowStatus.CANCELLED)


def test_a_retry_is_waited_for_beyond_the_failure_that_it_repairs(client: MeshClient) -> None:
    handle = client.start("orders", "order:1", Order(item="nothing"))
    with pytest.raises(ValueError, match="nothing to ship"):
        execute(client, "orders", "order:1")

    assert handle.wait(0).status is WorkflowStatus.FAILED
    assert client.retry("order:1", run_id=handle.run_id)
    assert not client.retry("order:1", run_id="another")
    assert len(client.runtime.hints.sent) == 2


def test_editions_are_numbered_after_the_highest_ever_started(client: MeshClient) -> None:
    assert latest_edition(client.runtime.store, DATE) == 0
    client.enqueue_briefing(DATE)
    second = client.enqueue_briefing(DATE, again=True)
    client.runtime.engine.abandon(second.workflow_id)

    third = client.enqueue_briefing(DATE, again=True)

    assert third.workflow_id == f"jarvis-briefing-{DATE}.3"


def test_a_reserved_run_id_is_allowed_for_any_workflow_id() -> None:
    for workflow_id in ("jarvis-briefing-2026-11-30.2", "über/alles", "x" * 255, "ü", "_a"):
        assert ExecutionRequest.start(run_id=reserved_run_id(workflow_id)).run_id
