"""What a briefing is told of the mesh: failed runs that wait for a person, and those that cannot be read."""

import pytest
from celery import Celery

from workers import MeshClient, register
from workers.facts import FAILED_RUNS, MeshFactsReader
from workers.testing import InMemoryRuntime
from workflow import (
    Event,
    JsonSerializer,
    RetryPolicy,
    SealedSerializer,
    StopEvent,
    Workflow,
    WorkflowResources,
    WorkflowState,
)
from workflow.records import CONTROL


class Go(Event):
    pass


def fail(event: Go, state: WorkflowState) -> StopEvent:
    raise ValueError("no flour")


@pytest.fixture
def runtime() -> InMemoryRuntime:
    made = InMemoryRuntime()
    sealed = SealedSerializer(JsonSerializer(), {"1": b"k" * 32})
    for name, options in (
        ("plain", {}),
        ("patient", {"retry": RetryPolicy(first_delay=3600)}),
        ("sealed", {"serializer": sealed}),
    ):
        register(
            name,
            lambda workflow_id, options=options: Workflow(
                workflow_id, nodes=[fail], start_event=Go(), resources=WorkflowResources(), **options
            ),
        )
    return made


def failed(runtime: InMemoryRuntime, **ids: int) -> dict[str, str]:
    client = MeshClient(runtime=runtime)
    for name, count in ids.items():
        for number in range(count):
            client.start(name, f"{name}:{number}")
    runtime.work()
    return told(runtime)


def told(runtime: InMemoryRuntime) -> dict[str, str]:
    broker = Celery(broker="memory://")
    reader = MeshFactsReader(runtime.store, runtime.engine_of, runtime.heartbeats, broker, runtime.settings)
    return {run.workflow_id: run.reason for run in reader().failed_runs}


def test_a_run_that_is_tried_again_by_itself_is_no_news(runtime) -> None:
    assert failed(runtime, plain=1, patient=1) == {"plain:0": "ValueError: no flour"}


def test_runs_that_are_tried_again_do_not_hide_one_that_is_not(runtime) -> None:
    assert failed(runtime, patient=FAILED_RUNS + 1, plain=1) == {"plain:0": "ValueError: no flour"}


def test_of_a_sealed_run_nothing_from_within_is_told(runtime) -> None:
    assert failed(runtime, sealed=1) == {"sealed:0": "ValueError"}


def test_a_run_that_cannot_be_read_costs_the_others_nothing(runtime) -> None:
    failed(runtime, plain=2)
    held = runtime.store.get("plain:0", CONTROL)
    runtime.store.write_if_unchanged("plain:0", CONTROL, held, {CONTROL: b"broken"}, index=runtime.store.entry("plain:0"))
    assert told(runtime) == {"plain:0": "its records cannot be read here", "plain:1": "ValueError: no flour"}
