"""The public names of every room: pinned, sorted, and all of them there."""

import importlib
import subprocess
import sys

import pytest

ROOMS = {
    "bus": [
        "Backoff",
        "BusError",
        "BusUnreachableError",
        "ChannelFrame",
        "ChannelGap",
        "DeadLetter",
        "Delivery",
        "GroupInfo",
        "GroupReader",
        "InMemoryLedger",
        "InMemorySignalBus",
        "Ledger",
        "Page",
        "RedisChannel",
        "RedisLedger",
        "RedisSignalBus",
        "Signal",
        "SignalBus",
        "SignalConsumer",
        "SqlLedger",
        "Taken",
        "check_topic",
        "chosen",
        "latest_position",
        "open_bus",
        "open_channel",
    ],
    "mesh": [
        "Assignment",
        "BriefingComposed",
        "BriefingStarted",
        "BriefingState",
        "DailyBriefingWorkflow",
        "InMemoryHeartbeatStore",
        "InMemoryKnowledgeStore",
        "InMemorySignalBus",
        "JarvisAgentFactory",
        "JarvisHeartbeatStore",
        "JarvisKnowledgeStore",
        "JarvisResources",
        "JarvisSignalBus",
        "MeshError",
        "OperationsCompleted",
        "RedisHeartbeatStore",
        "RedisKnowledgeStore",
        "ResearchCompleted",
        "RoleAgent",
        "WatchdogRequest",
        "WatchdogWorkflow",
    ],
    "workers": [
        "MeshClient",
        "RunHandle",
        "RunResult",
        "Settings",
        "WorkersError",
        "register",
    ],
    "workflow": [
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
    ],
    "persistence": [
        "FilePersistence",
        "InMemoryPersistence",
        "IndexEntry",
        "LogEntry",
        "Persistence",
        "PersistenceError",
        "RedisPersistence",
        "SqlPersistence",
        "UnreachableError",
        "open_persistence",
    ],
    "persistence.file": ["FilePersistence", "directory_of"],
    "persistence.redis": [
        "CLUSTER_RIGHTS",
        "CONNECTION_RIGHTS",
        "STORE_RIGHTS",
        "Client",
        "ClusterAddress",
        "RedisLink",
        "RedisPersistence",
        "Script",
        "connect",
        "load_script",
        "missing_rights",
    ],
    "persistence.sql": ["MappedRecords", "RecordColumns", "SqlPersistence", "Tables", "ddl"],
    "persistence.testing": [
        "PersistenceContract",
        "PersistenceScaleContract",
        "PersistenceTroubleContract",
        "SharedPersistenceContract",
    ],
    "workflow.exporting": [
        "Box",
        "ConsoleExporter",
        "Edge",
        "Exporter",
        "Mark",
        "MermaidExporter",
        "Picture",
        "Progress",
        "draw",
        "read_progress",
    ],
}
"""What a room promises. A name that is added here stays."""

NOT_LOADED = {
    "persistence": ["redis", "sqlalchemy", "pytest", "hypothesis"],
    "workflow": ["redis", "celery", "sqlalchemy", "structlog", "cryptography"],
    "bus": ["redis", "celery"],
    "mesh": ["redis", "feedparser", "icalendar", "apprise"],
    "workers": ["celery", "redis"],
}
"""What importing a room does not load: clients and tools that only some of its users need."""


@pytest.mark.parametrize("room", ROOMS)
def test_the_public_names_of_a_room_are_pinned_and_sorted(room):
    assert importlib.import_module(room).__all__ == ROOMS[room]
    assert ROOMS[room] == sorted(ROOMS[room], key=lambda name: (not name.isupper(), name))  # constants first


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_of_a_room_is_there(room):
    module = importlib.import_module(room)
    assert [name for name in ROOMS[room] if getattr(module, name, None) is None] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_that_a_room_does_not_have_is_an_attribute_error(room):
    with pytest.raises(AttributeError, match="no_such_name"):
        importlib.import_module(room).no_such_name  # noqa: B018 - read for the error that it raises


@pytest.mark.parametrize("room", NOT_LOADED)
def test_importing_a_room_loads_no_client(room):
    program = f"import sys, {room}; print([name for name in {NOT_LOADED[room]} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
