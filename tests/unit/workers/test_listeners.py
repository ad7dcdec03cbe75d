"""What workers log of each step, and the spans that they make of runs."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from bus import InMemorySignalBus
from persistence import InMemoryPersistence
from workers.composition import Runtime
from workers.registry import register
from workers.settings import Settings
from workers.telemetry.listeners import log_steps, process_listeners
from workers.telemetry.tracing import RunTrace, TracingListener, open_telemetry, run_trace
from workflow import (
    Event,
    ExecutionRequest,
    GraphError,
    ParallelEvent,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
    await_event,
    memoize,
)


class Next(Event):
    pass


class Part(Event):
    pass


def first(event: StartEvent, state: WorkflowState) -> Next:
    memoize("made", lambda: 1)
    return Next()


def asking(event: Next, state: WorkflowState) -> StopEvent:
    if await_event("go") == "fail":
        raise ValueError("trouble")
    return StopEvent()


@dataclass
class FakeSpan:
    """A span that remembers what became of it."""

    name: str
    attributes: Mapping[str, Any]
    trace: RunTrace | None = None
    children: list["FakeSpan"] = field(default_factory=list["FakeSpan"])
    ended: tuple[str, BaseException | None] | None = None

    def child(self, name: str, attributes: Mapping[str, Any]) -> "FakeSpan":
        self.children.append(FakeSpan(name, attributes))
        return self.children[-1]

    def end(self, outcome: str, error: BaseException | None) -> None:
        assert self.ended is None
        self.ended = (outcome, error)


class FakeTracer:
    def __init__(self) -> None:
        self.segments: list[FakeSpan] = []

    def segment(self, trace: RunTrace, name: str, attributes: Mapping[str, Any]) -> FakeSpan:
        self.segments.append(FakeSpan(name, attributes, trace))
        return self.segments[-1]


@pytest.fixture
def tracer() -> FakeTracer:
    """Return a tracer that remembers its spans."""
    return FakeTracer()


@pytest.fixture
def orders() -> Callable[..., Workflow[Any]]:
    """Return what makes a workflow of two nodes, anew on one store as another process would."""
    store = InMemoryPersistence()

    def make(*listeners: Any, nodes: Any = (first, asking)) -> Workflow[Any]:
        return Workflow("order:1", nodes=nodes, persistence=store, listeners=listeners).reconfigure(name="order")

    return make


@pytest.fixture
def lines():
    """Return the lines that are logged meanwhile."""
    structlog.reset_defaults()
    with capture_logs() as captured:
        yield captured
    structlog.reset_defaults()


# --- the log ----------------------------------------------------------------------------------------------------------------


def test_each_step_is_one_line_with_its_name_its_duration_and_its_outcome(orders, lines) -> None:
    definition = orders(log_steps)
    definition.run(ExecutionRequest.start(run_id="r"))
    with pytest.raises(ValueError, match="trouble"):
        definition.run(ExecutionRequest.resume("fail"))
    assert [(line["event"], line["node"], line["log_level"]) for line in lines] == [
        ("step completed", "first", "info"),
        ("step suspended", "asking", "info"),
        ("step failed", "asking", "warning"),
    ]
    assert all(line["seconds"] >= 0 and line["run_id"] == "r" and line["workflow_id"] == "order:1" for line in lines)
    assert [line["step"] for line in lines] == ["first-0", "asking-1", "asking-1"]
    assert lines[2]["error"] == "ValueError('trouble')"
    assert not any("branch" in line for line in lines)


def test_a_step_of_a_branch_names_it(orders, lines) -> None:
    def fork(event: StartEvent, state: WorkflowState) -> ParallelEvent:
        return ParallelEvent({"part": Part()})

    def part(event: Part, state: WorkflowState) -> StopEvent:
        return StopEvent()

    def join(event: ParallelEvent, state: WorkflowState) -> StopEvent:
        return StopEvent()

    orders(log_steps, nodes=(fork, part, join)).run()
    assert [line.get("branch") for line in lines] == [None, "part", None]


def test_the_composition_root_adds_its_listeners_to_those_of_a_definition(monkeypatch) -> None:
    heard: list[Any] = []
    register("listened", lambda workflow_id: Workflow(workflow_id, nodes=[first, asking], listeners=[heard.append]))
    runtime = Runtime(Settings(redis_url="redis://localhost:1/0"))
    monkeypatch.setitem(runtime.__dict__, "store", InMemoryPersistence())
    monkeypatch.setitem(runtime.__dict__, "signals", InMemorySignalBus())
    more: list[Any] = []
    monkeypatch.setitem(runtime.__dict__, "listeners", (more.append,))
    runtime.definition("listened", "listened:1").run()
    assert more
    assert heard == more


def test_every_process_logs_its_steps() -> None:
    assert log_steps in process_listeners()


# --- spans ------------------------------------------------------------------------------------------------------------------


def test_a_run_is_one_trace_of_segments_steps_and_memos_in_whichever_process(tracer, orders) -> None:
    orders(TracingListener(tracer)).run(ExecutionRequest.start(run_id="r", tag="t"))
    orders(TracingListener(tracer)).run(ExecutionRequest.resume("go"))
    one, two = tracer.segments
    assert one.trace == two.trace == run_trace("order:1", "r")
    assert (one.name, one.ended, two.ended) == ("segment order", ("suspended", None), ("completed", None))
    assert dict(one.attributes) == {
        "workflow.id": "order:1",
        "workflow.name": "order",
        "workflow.run_id": "r",
        "workflow.attempt": 1,
        "workflow.tag": "t",
    }
    assert [(step.name, step.ended) for step in one.children] == [
        ("step first", ("completed", None)),
        ("step asking", ("suspended", None)),
    ]
    assert [(memo.name, memo.ended) for memo in one.children[0].children] == [("memo made", ("completed", None))]
    assert [step.name for step in two.children] == ["step asking"]


def test_a_failure_marks_its_step_and_its_segment(tracer, orders) -> None:
    definition = orders(TracingListener(tracer))
    definition.run()
    with pytest.raises(ValueError, match="trouble") as failure:
        definition.run(ExecutionRequest.resume("fail"))
    segment = tracer.segments[-1]
    assert segment.ended == segment.children[0].ended == ("failed", failure.value)


def test_a_segment_that_fails_before_its_first_step_has_a_span(tracer, orders) -> None:
    with pytest.raises(GraphError) as failure:
        orders(TracingListener(tracer), nodes=()).run()
    assert [segment.ended for segment in tracer.segments] == [("failed", failure.value)]


def test_the_ids_of_a_run_are_its_own_and_fit_their_width() -> None:
    ids = {run_trace(workflow, run) for workflow in ("a", "b") for run in ("1", "2")}
    assert len(ids) == 4
    assert all(0 < one.trace_id < 2**128 and 0 < one.span_id < 2**64 for one in ids)
    assert run_trace("a", "1") == run_trace("a", "1")


def test_without_opentelemetry_there_is_no_listener_for_it(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    assert open_telemetry() is None
    assert process_listeners() == (log_steps,)


def test_the_library_makes_the_spans_that_it_is_asked_for(orders) -> None:
    """With OpenTelemetry itself, where it is installed."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    inside: list[Any] = []

    def looking(event: StartEvent, state: WorkflowState) -> Next:
        inside.append(trace.get_current_span().get_span_context().span_id)
        return Next()

    definition = orders(open_telemetry(), nodes=(looking, asking))
    with trace.get_tracer("test").start_as_current_span("task") as task:
        definition.run(ExecutionRequest.start(run_id="r"))
        assert trace.get_current_span() is task
    with pytest.raises(ValueError, match="trouble"):
        definition.run(ExecutionRequest.resume("fail"))
    spans = exporter.get_finished_spans()
    run = run_trace("order:1", "r")
    segments = [span for span in spans if span.name == "segment order"]
    steps = [span for span in spans if span.name.startswith("step")]
    assert [(span.parent.span_id, span.context.trace_id) for span in segments] == [(run.span_id, run.trace_id)] * 2
    assert [[link.context for link in span.links] for span in segments] == [[task.get_span_context()], []]
    assert [span.parent.span_id for span in steps] == [segments[0].context.span_id] * 2 + [segments[1].context.span_id]
    assert inside == [steps[0].context.span_id]
    assert [span.status.status_code.name for span in segments] == ["UNSET", "ERROR"]
    assert [event.name for event in steps[-1].events] == ["exception"]
