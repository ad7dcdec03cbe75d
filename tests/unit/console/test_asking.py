"""What a person who waits for a briefing is told when an agent fails for a moment."""

import threading
from pathlib import Path
from typing import Any

import pytest

import console.asking
from console.asking import follow
from console.joining import Joined
from console.output import say as write
from workers import MeshClient, Settings, register
from workers.testing import InMemoryRuntime
from workflow import (
    Event,
    ExecutionRequest,
    RetryPolicy,
    StopEvent,
    Workflow,
    WorkflowResources,
    WorkflowState,
    WorkflowStatus,
)


class Go(Event):
    pass


class Shown:
    """Progress that nobody looks at."""

    def at(self, step: str) -> None: ...

    def done(self) -> None: ...


def test_a_failure_that_is_tried_again_is_said_once_and_waited_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [ValueError("the agent is ill")]

    def work(event: Go, state: WorkflowState) -> StopEvent:
        if errors:
            raise errors.pop()
        return StopEvent("text")

    def define(workflow_id: str) -> Workflow:
        options: dict[str, Any] = {"retry": RetryPolicy(first_delay=3600), "retain_completion": True}
        return Workflow(workflow_id, nodes=[work], start_event=Go(), resources=WorkflowResources(), **options)

    register("waited-briefing", define)
    settings = Settings.load()
    client = MeshClient(runtime=InMemoryRuntime(settings))
    mesh = Joined(settings, tmp_path)
    mesh.__dict__["client"] = client
    handle = client.start("waited-briefing", "b:1")
    definition = client.runtime.definition("waited-briefing", "b:1")
    with pytest.raises(ValueError, match="ill"):
        definition.run(ExecutionRequest.resume())
    told = threading.Event()

    def say(line: str) -> None:
        write(line)
        told.set()

    def work_when_told() -> None:
        if told.wait(30):
            definition.run(ExecutionRequest.resume())

    monkeypatch.setattr(console.asking, "say", say)
    worker = threading.Thread(target=work_when_told)
    worker.start()

    result = follow(handle, mesh, Shown())

    worker.join()
    assert (result.status, result.result) == (WorkflowStatus.COMPLETED, "text")
    [said] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("jarvis: ")]
    assert said.startswith("jarvis: ValueError: the agent is ill; it is tried again at 20")
