"""The `jarvis` command in this process, on a server of its own, with workflows of the test's that this process executes."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from console.main import run
from workers import MeshClient, Settings, register
from workers.composition import Runtime
from workers.registry import definition
from workflow import (
    Action,
    ApprovalRequest,
    Event,
    ExecutionRequest,
    PickleSerializer,
    RetryPolicy,
    StopEvent,
    StreamAdapter,
    Workflow,
    WorkflowRefusedError,
    WorkflowResources,
    WorkflowState,
    await_event,
    emit,
    interrupt,
)


class Order(Event):
    item: str = "flour"


class Paid(Event):
    pass


BROKEN: set[str] = set()
"""Items that cannot be shipped at present."""


def ask(event: Order, state: WorkflowState) -> Paid:
    if event.item == "gold":
        interrupt(ApprovalRequest("pay for gold?", (Action("pay", "Pay"), Action("ship", "Ship"))))
    if event.item == "any":
        state.set("color", await_event("color"))
    return Paid()


def ship(event: Paid, state: WorkflowState) -> StopEvent:
    emit({"packed": 1})
    if BROKEN:
        raise ValueError(f"no {min(BROKEN)}")
    return StopEvent(state.get("color") or "shipped")


def orders(workflow_id: str, **options: object) -> Workflow:
    return Workflow(workflow_id, nodes=[ask, ship], start_event=Order(), resources=WorkflowResources(), **options)


@dataclass
class Shop:
    """A mesh whose only worker is the test."""

    client: MeshClient
    jarvis: Callable[..., tuple[int, str, str]]

    def order(self, workflow_id: str, item: str = "flour", name: str = "orders", tag: str | None = None) -> str:
        run_id = self.client.start(name, workflow_id, Order(item=item), tag=tag).run_id
        self.work(workflow_id)
        return run_id

    def work(self, workflow_id: str) -> None:
        entry = self.client.runtime.store.entry(workflow_id)
        assert entry is not None
        try:
            self.client.runtime.definition(entry.name, workflow_id).run(ExecutionRequest.resume())
        except (ValueError, WorkflowRefusedError):
            return

    def break_down(self) -> None:
        BROKEN.add("van")

    def mend(self) -> None:
        BROKEN.clear()

    def without_history(self, workflow_id: str) -> None:
        definition("orders", workflow_id).reconfigure(persistence=self.client.runtime.store).ignite(tag="plain")


@pytest.fixture
def shop(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shop]:
    for name in [name for name in os.environ if name.startswith("JARVIS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JARVIS_REDIS_URL", redis_url)
    monkeypatch.chdir(tmp_path)
    register("orders", orders)
    register("patient-orders", lambda workflow_id: orders(workflow_id, retry=RetryPolicy(first_delay=3600, jitter=0)))
    register("streamed-orders", lambda workflow_id: orders(workflow_id, stream_adapter=StreamAdapter()))
    register("secret-orders", lambda workflow_id: orders(workflow_id, serializer=PickleSerializer()))
    register("kept-orders", lambda workflow_id: orders(workflow_id, retain_completion=True))

    def jarvis(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()  # what this process has logged as a worker
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    client = MeshClient(runtime=Runtime(Settings.load()))
    yield Shop(client, jarvis)
    client.close()
    BROKEN.clear()
