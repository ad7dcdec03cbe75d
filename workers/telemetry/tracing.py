"""Spans of runs for OpenTelemetry: run, segment, step and memo, one beneath the other.

A run is one trace, whichever processes execute it and however long it waits between: the ids of the trace and of its root are
derived from the run, so nothing needs to travel with hints. No process ever is the whole run, so none writes the root itself;
segments are its children, each linked to the span that was current where it began (a Celery task's, say). The spans of steps
and memos are current while these run, so what an instrumented client does in a node appears beneath it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any, Protocol

from workflow.observing import (
    Ending,
    MemoEnded,
    MemoStarted,
    NodeEnded,
    NodeStarted,
    Observation,
    WorkflowEnded,
    WorkflowFailed,
    WorkflowStarted,
)

__all__ = ["OpenSpan", "RunTrace", "Tracer", "TracingListener", "open_telemetry", "run_trace"]

TRACER_NAME = "jarvis-mesh"

Attributes = Mapping[str, str | int]
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RunTrace:
    """The ids of a run's trace and of its root span, of 128 and 64 bits."""

    trace_id: int
    span_id: int


def run_trace(workflow_id: str, run_id: str) -> RunTrace:
    """The same ids in every process."""
    digest = sha256(f"{workflow_id}\x00{run_id}".encode()).digest()
    return RunTrace(int.from_bytes(digest[:16]), int.from_bytes(digest[16:24]))


class OpenSpan(Protocol):
    """A span that has not ended."""

    def child(self, name: str, attributes: Attributes) -> "OpenSpan":
        """Start a span beneath it, and make that one current here."""
        ...

    def end(self, outcome: str, error: BaseException | None) -> None:
        """End it, and make current again what was before. An error marks it failed."""
        ...


class Tracer(Protocol):
    """What the listener asks of a tracing library."""

    def segment(self, trace: RunTrace, name: str, attributes: Attributes) -> OpenSpan:
        """Start a span beneath the root of a run, linked to the span that is current here, and make it current."""
        ...


class TracingListener:
    """Turns observations into spans. Serves all segments of a process at once."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open: dict[Key, OpenSpan] = {}
        self._errors: dict[Key, BaseException] = {}

    def __call__(self, observation: Observation) -> None:
        """See `workflow.observing.Listener`."""
        segment = (observation.execution.workflow_id, observation.execution.run_id, observation.execution.attempt)
        match observation:
            case WorkflowStarted():
                self._begin_segment(segment, observation)
            case NodeStarted(step_id=step):
                self._begin(segment, (*segment, step), f"step {observation.source}", _of_step(observation, step))
            case MemoStarted(step_id=step, memo=memo):
                self._begin((*segment, step), (*segment, step, memo), f"memo {memo}", _of_step(observation, step))
            case MemoEnded(step_id=step, memo=memo):
                self._end((*segment, step, memo), observation.outcome, observation.error)
            case NodeEnded(step_id=step):
                self._end((*segment, step), observation.outcome, observation.error)
            case WorkflowFailed(error=error):
                if segment not in self._open:  # the graph or the resources could not be made
                    self._begin_segment(segment, observation)
                self._errors[segment] = error
            case WorkflowEnded():
                self._end(segment, observation.outcome, self._errors.pop(segment, None))
            case _:
                pass

    def _begin_segment(self, key: Key, observation: Observation) -> None:
        execution = observation.execution
        attributes: dict[str, str | int] = {
            "workflow.id": execution.workflow_id,
            "workflow.name": execution.name,
            "workflow.run_id": execution.run_id,
            "workflow.attempt": execution.attempt,
        }
        if execution.tag is not None:
            attributes["workflow.tag"] = execution.tag
        trace = run_trace(execution.workflow_id, execution.run_id)
        self._open[key] = self._tracer.segment(trace, f"segment {execution.name}", attributes)

    def _begin(self, parent: Key, key: Key, name: str, attributes: Attributes) -> None:
        above = self._open.get(parent)
        if above is not None:
            self._open[key] = above.child(name, attributes)

    def _end(self, key: Key, outcome: Ending, error: BaseException | None) -> None:
        span = self._open.pop(key, None)
        if span is not None:
            span.end(outcome.value, error)


def _of_step(observation: Observation, step_id: str) -> Attributes:
    attributes = {"workflow.step_id": step_id}
    return attributes if observation.branch is None else {**attributes, "workflow.branch": observation.branch}


# --- the library ------------------------------------------------------------------------------------------------------------


def open_telemetry() -> TracingListener | None:
    """The listener for this process's tracer provider; None where OpenTelemetry is not installed (the extra ``otel``)."""
    try:
        trace, context = import_module("opentelemetry.trace"), import_module("opentelemetry.context")
    except ImportError:
        return None
    return TracingListener(_Library(trace, context))


@dataclass(frozen=True, slots=True)
class _Library:
    """OpenTelemetry's own calls. Its modules are handed in, since they may not be there to import."""

    trace: Any
    context: Any

    def segment(self, trace: RunTrace, name: str, attributes: Attributes) -> OpenSpan:
        """See `Tracer.segment`."""
        flags = self.trace.TraceFlags(self.trace.TraceFlags.SAMPLED)
        root = self.trace.SpanContext(trace.trace_id, trace.span_id, is_remote=True, trace_flags=flags)
        current = self.trace.get_current_span().get_span_context()
        links = [self.trace.Link(current)] if current.is_valid else []
        return self.started(self.trace.NonRecordingSpan(root), name, attributes, links)

    def started(self, parent: Any, name: str, attributes: Attributes, links: list[Any]) -> "_LibrarySpan":
        """Start a span and make it current."""
        # The provider is asked each time: the program may install one later than the first run.
        tracer = self.trace.get_tracer(TRACER_NAME)
        above = self.trace.set_span_in_context(parent)
        span = tracer.start_span(name, context=above, attributes=dict(attributes), links=links)
        token = self.context.attach(self.trace.set_span_in_context(span))
        return _LibrarySpan(self, span, lambda: self.context.detach(token))


@dataclass(frozen=True, slots=True)
class _LibrarySpan:
    library: _Library
    span: Any
    leave: Callable[[], None]

    def child(self, name: str, attributes: Attributes) -> OpenSpan:
        """See `OpenSpan.child`."""
        return self.library.started(self.span, name, attributes, [])

    def end(self, outcome: str, error: BaseException | None) -> None:
        """See `OpenSpan.end`."""
        self.leave()
        self.span.set_attribute("workflow.outcome", outcome)
        if error is not None:
            self.span.record_exception(error)
            self.span.set_status(self.library.trace.Status(self.library.trace.StatusCode.ERROR, str(error)))
        self.span.end()
