"""The durable engine: typed events route between nodes, and a run survives the death of any process that executes it."""

from workflow.branches import BranchRunner, ConcurrentBranchRunner, SequentialBranchRunner
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
    SerializationError,
    StaleRunError,
    WorkflowError,
    WorkflowRefusedError,
)
from workflow.events import ActivityStreamEvent, Event, InterruptEvent, StartEvent, StopEvent
from workflow.exporting import ConsoleExporter, MermaidExporter
from workflow.interrupts import (
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
from workflow.state import Execution, WorkflowState
from workflow.status import WorkflowStatus
from workflow.stream import AsyncEventStream, EventStream

__all__ = [
    "Action",
    "ActivityStreamEvent",
    "ApprovalRequest",
    "AsyncEventStream",
    "BranchRunner",
    "Clock",
    "ConcurrentBranchRunner",
    "ConsoleExporter",
    "Event",
    "EventStream",
    "Execution",
    "ExecutionRequest",
    "Failure",
    "GraphError",
    "InputKind",
    "InputTranslationError",
    "InterruptEvent",
    "InterruptRequest",
    "InterruptType",
    "JsonSerializer",
    "ManualClock",
    "MermaidExporter",
    "Middleware",
    "Node",
    "OpaqueValue",
    "ParallelEvent",
    "PendingExecution",
    "PickleSerializer",
    "RefusalReason",
    "RunInFlightError",
    "SequentialBranchRunner",
    "SerializationError",
    "Serializer",
    "SleepUntilRequest",
    "StaleRunError",
    "StartEvent",
    "StopEvent",
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
]
