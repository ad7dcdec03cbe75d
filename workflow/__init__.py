"""The durable engine: typed events route between nodes, and a run survives the death of any process that executes it."""

from typing import TYPE_CHECKING, Any

from workflow.adapting import JsonStreamAdapter, StreamAdapter, StreamFrame
from workflow.branches import BranchRunner, ConcurrentBranchRunner, SequentialBranchRunner
from workflow.channels import CallbackChannel, Channel, Envelope, Feed
from workflow.clock import Clock, ManualClock, SystemClock
from workflow.context import (
    amemoize,
    await_event,
    branch_id,
    emit,
    idempotency_key,
    interrupt,
    interrupt_if,
    memoize,
    recall_memo,
    sleep_until,
)
from workflow.definition import Workflow
from workflow.engine import WorkflowEngine, WorkflowRunSnapshot
from workflow.errors import (
    GraphError,
    InputTranslationError,
    RefusalReason,
    RunInFlightError,
    RunStalledError,
    SerializationError,
    StaleRunError,
    WorkflowError,
    WorkflowRefusedError,
)
from workflow.events import ActivityStreamEvent, Event, InterruptEvent, StartEvent, StopEvent
from workflow.exporting import ConsoleExporter, MermaidExporter
from workflow.interrupts import (
    START_OF_RUN,
    Action,
    ApprovalRequest,
    InputKind,
    InterruptRequest,
    InterruptType,
    SleepUntilRequest,
    WaitForEventRequest,
)
from workflow.json_codec import JsonSerializer
from workflow.middleware import Middleware
from workflow.node import Node
from workflow.parallel import ParallelEvent
from workflow.pending import PendingExecution
from workflow.records import Failure
from workflow.requests import ExecutionRequest
from workflow.resources import WorkflowResources
from workflow.serializer import OpaqueValue, PickleSerializer, Serializer
from workflow.sse import sse_comment, sse_event, sse_frame
from workflow.state import Execution, WorkflowState
from workflow.status import WorkflowStatus
from workflow.stream import AsyncEventStream, EventStream
from workflow.trials import RetryPolicy

if TYPE_CHECKING:
    from workflow.sealed import SealedSerializer

__all__ = [
    "START_OF_RUN",
    "Action",
    "ActivityStreamEvent",
    "ApprovalRequest",
    "AsyncEventStream",
    "BranchRunner",
    "CallbackChannel",
    "Channel",
    "Clock",
    "ConcurrentBranchRunner",
    "ConsoleExporter",
    "Envelope",
    "Event",
    "EventStream",
    "Execution",
    "ExecutionRequest",
    "Failure",
    "Feed",
    "GraphError",
    "InputKind",
    "InputTranslationError",
    "InterruptEvent",
    "InterruptRequest",
    "InterruptType",
    "JsonSerializer",
    "JsonStreamAdapter",
    "ManualClock",
    "MermaidExporter",
    "Middleware",
    "Node",
    "OpaqueValue",
    "ParallelEvent",
    "PendingExecution",
    "PickleSerializer",
    "RefusalReason",
    "RetryPolicy",
    "RunInFlightError",
    "RunStalledError",
    "SealedSerializer",
    "SequentialBranchRunner",
    "SerializationError",
    "Serializer",
    "SleepUntilRequest",
    "StaleRunError",
    "StartEvent",
    "StopEvent",
    "StreamAdapter",
    "StreamFrame",
    "SystemClock",
    "WaitForEventRequest",
    "Workflow",
    "WorkflowEngine",
    "WorkflowError",
    "WorkflowRefusedError",
    "WorkflowResources",
    "WorkflowRunSnapshot",
    "WorkflowState",
    "WorkflowStatus",
    "amemoize",
    "await_event",
    "branch_id",
    "emit",
    "idempotency_key",
    "interrupt",
    "interrupt_if",
    "memoize",
    "recall_memo",
    "sleep_until",
    "sse_comment",
    "sse_event",
    "sse_frame",
]


def __getattr__(name: str) -> Any:
    """`SealedSerializer` on demand, since it needs a package that not everybody has (PEP 562)."""
    if name == "SealedSerializer":
        from workflow.sealed import SealedSerializer

        return SealedSerializer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
