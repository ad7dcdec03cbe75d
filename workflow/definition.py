"""`Workflow`: a reusable definition. No run changes it; each segment resolves what it needs when it begins."""

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, cast

from typing_extensions import TypeVar, get_original_bases

from persistence import InMemoryPersistence, Persistence
from workflow.adapting import StreamAdapter, StreamAdapterLike, adapter_maker
from workflow.admission import Start, record_start
from workflow.aio import AsyncWorkflow
from workflow.branches import BranchRunner, SequentialBranchRunner
from workflow.bridge import DirectHost, drive, refuse_on_event_loop
from workflow.channels import Channel
from workflow.clock import Clock, SystemClock
from workflow.compatibility import check_structure, check_version
from workflow.delivery import Route
from workflow.engine import WorkflowEngine, WorkflowRunSnapshot
from workflow.errors import WorkflowError
from workflow.events import Event, StartEvent
from workflow.exporting import Exporter, MermaidExporter, Picture, draw
from workflow.graph import Graph, build_graph, read_nodes
from workflow.ids import check_workflow_id
from workflow.json_codec import JsonSerializer
from workflow.middleware import MiddlewareLike, check_middleware
from workflow.node import Node
from workflow.observing import Listener, check_listeners
from workflow.output import NoOutput
from workflow.path import RecordedPath
from workflow.pending import PendingExecution, Translator, answer_request
from workflow.requests import ExecutionRequest
from workflow.resources import WorkflowResources
from workflow.running import Running
from workflow.segment import Plan
from workflow.serializer import Serializer
from workflow.signals import SignalPosition
from workflow.state import WorkflowState
from workflow.store import RunStore
from workflow.stream import EventStream
from workflow.trials import RetryPolicy

__all__ = ["Workflow"]

StateT = TypeVar("StateT", bound=WorkflowState, default=WorkflowState)
NodeLike = Node | Callable[..., Any]
ResourcesLike = WorkflowResources | Callable[..., WorkflowResources]

MIN_LEASE = 1
"""Seconds; a lease must be longer than the clocks of two workers may differ."""


class Unset:
    """Stands for "not given", where None means something."""


UNSET = Unset()


class Workflow(Generic[StateT]):
    """A workflow: nodes, and how they are run. Subclass it and override the hooks, or hand everything to the constructor.

    Class attributes are the definition's defaults; a constructor argument wins over them, and over the hook of its name.
    Durations are in seconds. ``node_timeout`` bounds the renewal of the lease; it does not interrupt the node.
    """

    name: str | None = None
    """How listings and workers call this definition; the class's qualified name unless given."""

    lease_timeout: float | None = None
    lease_renewal: bool = True
    node_timeout: float = 3600
    max_steps: int | None = None
    retain_completion: bool = False
    retain_for: float | None = None
    retry: RetryPolicy | None = None
    """When a failed run is tried again by itself; somebody who sweeps the due index does it."""
    max_takeovers: int | None = None
    """Workers that may be lost with a run, without a committed step between, before it is parked."""
    history: bool = False
    """Whether what happens to a run is told in the store's log, which outlives it."""
    version: str | None = None
    """Recorded with each new run; None asks only whether the nodes still fit."""
    compatible_versions: Iterable[str] = ()
    """Versions whose runs this definition may continue."""

    def __init__(
        self,
        workflow_id: str | None = None,
        *,
        nodes: Iterable[NodeLike] = (),
        start_event: Event | None = None,
        state: StateT | None = None,
        resources: ResourcesLike | None = None,
        persistence: Persistence | None = None,
        serializer: Serializer | None = None,
        lease_timeout: float | Unset | None = UNSET,
        lease_renewal: bool | Unset = UNSET,
        node_timeout: float | Unset = UNSET,
        max_steps: int | Unset | None = UNSET,
        retain_completion: bool | Unset = UNSET,
        retain_for: float | Unset | None = UNSET,
        retry: RetryPolicy | Unset | None = UNSET,
        max_takeovers: int | Unset | None = UNSET,
        history: bool | Unset = UNSET,
        branch_runner: BranchRunner | None = None,
        middleware: Iterable[MiddlewareLike] = (),
        listeners: Iterable[Listener] = (),
        stream_adapter: StreamAdapterLike | None = None,
        channel: Channel | None = None,
        clock: Clock | None = None,
        version: str | Unset | None = UNSET,
        compatible_versions: Iterable[str] | Unset = UNSET,
        types: Iterable[type] = (),
        signal_position: SignalPosition | None = None,
    ) -> None:
        self._workflow_id = workflow_id
        self._nodes = tuple(nodes)
        self._start_event = start_event
        self._seed = state
        self._resources = resources
        self._persistence: Persistence = persistence if persistence is not None else InMemoryPersistence()
        self._serializer = serializer
        self._branch_runner = branch_runner
        self._middleware = check_middleware(middleware)
        self._listeners = check_listeners(listeners)
        self._stream_adapter = stream_adapter
        self._channel = channel
        self._clock: Clock = clock or SystemClock()
        self._types = tuple(types)
        self._signal_position = signal_position
        given = {
            "lease_timeout": lease_timeout,
            "lease_renewal": lease_renewal,
            "node_timeout": node_timeout,
            "max_steps": max_steps,
            "retain_completion": retain_completion,
            "retain_for": retain_for,
            "retry": retry,
            "max_takeovers": max_takeovers,
            "history": history,
            "version": version,
            "compatible_versions": compatible_versions,
        }
        for option, value in given.items():
            if value is not UNSET:
                setattr(self, option, _KEPT.get(option, _as_is)(value))

    # --- hooks --------------------------------------------------------------------------------------------------------------

    def declared_id(self) -> str | None:
        """Override it to derive the workflow id from the definition's own data."""
        return None

    def nodes(self) -> Iterable[NodeLike]:
        """The nodes; those handed to the constructor are added."""
        return ()

    def start_event(self) -> Event:
        """What a run starts with when the request brings no event."""
        return StartEvent()

    def state(self) -> StateT:
        """The state that a run begins with; each run gets a copy of its own."""
        return cast(StateT, _state_class(type(self))())

    def resources(self) -> WorkflowResources:
        """The live services of one segment."""
        return WorkflowResources()

    def middleware(self) -> Iterable[MiddlewareLike]:
        """Middleware for every node, or pairs of node class or function and middleware; the constructor's is added."""
        return ()

    def listeners(self) -> Iterable[Listener]:
        """Who is told what a segment does, fixed when it is called; the constructor's are added."""
        return ()

    def branch_runner(self) -> BranchRunner:
        """How the branches of forks advance; the constructor's wins."""
        return SequentialBranchRunner()

    def stream_adapter(self) -> StreamAdapter | None:
        """What turns the live items of one segment into frames; the constructor's wins."""
        return None

    def channel(self) -> Channel | None:
        """Where one segment pushes its frames; the constructor's wins. Called in the thread that feeds the channel."""
        return None

    @property
    def has_resources(self) -> bool:
        """Whether the definition says itself where its resources come from."""
        return self._resources is not None or type(self).resources is not Workflow.resources

    @property
    def has_serializer(self) -> bool:
        """Whether the definition says itself how its values are written."""
        return self._serializer is not None

    @property
    def streams(self) -> bool:
        """Whether the definition says how live items become frames, and leaves open where these are pushed."""
        adapted = self._stream_adapter is not None or type(self).stream_adapter is not Workflow.stream_adapter
        pushed = self._channel is not None or type(self).channel is not Workflow.channel
        return adapted and not pushed

    # --- changed copies -----------------------------------------------------------------------------------------------------

    def reconfigure(self, **changes: Any) -> Self:
        """A copy with other constructor arguments. Raises `WorkflowError` naming an argument that does not exist."""
        made = copy.copy(self)
        for option, value in changes.items():
            setattr(made, _ATTRIBUTES.get(option) or _unknown_option(option), _KEPT.get(option, _as_is)(value))
        return made

    def for_id(self, workflow_id: str) -> Self:
        """A copy bound to a workflow id."""
        return self.reconfigure(workflow_id=workflow_id)

    def listened_to_by(self, *listeners: Listener) -> Self:
        """A copy with more listeners."""
        return self.reconfigure(listeners=(*self._listeners, *listeners))

    @property
    def workflow_id(self) -> str:
        """The bound id. Raises `WorkflowError` when there is none, when two disagree, or when it may name no workflow."""
        declared, given = self.declared_id(), self._workflow_id
        if declared is not None and given is not None and declared != given:
            raise WorkflowError(f"misidentified run: the definition declares {declared!r}, but was given {given!r}")
        bound = declared if declared is not None else given
        if bound is None:
            raise WorkflowError(f"{type(self).__qualname__} has no workflow ID: pass `workflow_id`, or use for_id()")
        return check_workflow_id(bound)

    # --- running ------------------------------------------------------------------------------------------------------------

    def run(self, request: ExecutionRequest | None = None) -> StateT:
        """Execute until the run settles and return its state. Without a request: start, or recover a failed run."""
        refuse_on_event_loop("run()", "workflow.aio.run()")
        return drive(self.prepare(request).execute(DirectHost(), NoOutput()))

    def events(self, request: ExecutionRequest | None = None) -> EventStream[StateT]:
        """`run` as a lazy iterator over the live items of its nodes; the state is the stream's ``state`` in the end."""
        self.workflow_id  # noqa: B018 - an unbound definition is refused here, not at the first pull
        return EventStream(lambda: self.prepare(request))

    def ignite(self, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None) -> str:
        """Record a start without executing it, and return its run id. Whoever continues the run executes it."""
        return record_start(self._store(), ExecutionRequest.start(event, run_id=run_id, tag=tag), self._start())

    def submit_inputs(self, payload: Any, translator: Translator | None = None) -> PendingExecution[StateT]:
        """An answer to what the run waits for now, fenced by what is seen now. Nothing is written before it is run."""
        return PendingExecution(self, answer_request(self.workflow_id, self.inspect(), payload, translator))

    def export(self, exporter: Exporter | None = None) -> str:
        """The graph as text, by default for Mermaid. Asks for no store, no resources and no run."""
        return (exporter or MermaidExporter()).export(self.picture())

    def picture(self) -> Picture:
        """The graph of the nodes, for the default start event. Raises `GraphError`."""
        return draw(self._all_nodes(), type(self._default_event()))

    @property
    def aio(self) -> AsyncWorkflow[StateT]:
        """The same calls for asyncio."""
        return AsyncWorkflow(self)

    def prepare(self, request: ExecutionRequest | None) -> Running[StateT]:
        """One call with everything resolved as it stands now. For the engine's own entries."""
        asked = request or ExecutionRequest.start(recover_failed=True)
        self._check_renewal()
        return Running(self._store(), self._plan(), asked, self._start())

    # --- settling -----------------------------------------------------------------------------------------------------------

    def inspect(self) -> WorkflowRunSnapshot | None:
        """See `WorkflowEngine.inspect`."""
        return self.engine().inspect(self.workflow_id)

    def abandon(self, run_id: str | None = None, execution_attempt: int | None = None) -> bool:
        """See `WorkflowEngine.abandon`."""
        return self.engine().abandon(self.workflow_id, run_id, execution_attempt)

    def acknowledge(self, run_id: str) -> None:
        """See `WorkflowEngine.acknowledge`."""
        self.engine().acknowledge(self.workflow_id, run_id)

    def cancel(self, run_id: str | None = None) -> bool:
        """See `WorkflowEngine.cancel`. What the definition says of retention covers cancelled runs too."""
        plan = self._plan()
        return self.engine().cancel(self.workflow_id, run_id, retain=plan.retain_completion, retain_for=plan.retain_for)

    def deliver(self, request: ExecutionRequest) -> bool:
        """See `WorkflowEngine.deliver`."""
        return self.engine().deliver(self.workflow_id, request)

    # --- what a call resolves -----------------------------------------------------------------------------------------------

    def _store(self) -> RunStore:
        store = RunStore(self._persistence, self._codec(), self.workflow_id, self._clock)
        store.lease_timeout = self._checked_lease()
        store.retry = self.retry
        store.bus_position = self._signal_position
        return store

    def _plan(self) -> Plan[StateT]:
        if self.max_steps is not None and self.max_steps < 1:
            raise WorkflowError(f"max_steps must be at least 1 or None, not {self.max_steps!r}")
        return Plan(
            make_resources=self._make_resources,
            build=self._build,
            seed=self._fresh_state,
            serializer=self._codec(),
            lease_renewal=self.lease_renewal,
            node_timeout=self.node_timeout,
            max_steps=self.max_steps,
            branch_runner=self._branch_runner or self.branch_runner(),
            retain_completion=self.retain_completion or self.retain_for is not None,
            retain_for=self.retain_for,
            listeners=(*check_listeners(self.listeners()), *self._listeners),
            route=Route(self._adapter_maker(), self._channel_maker()),
        )

    def _adapter_maker(self) -> Callable[[], StreamAdapter | None] | None:
        """What makes the adapter of a segment. None where nobody has named one: then nothing is made, nor asked for."""
        if self._stream_adapter is not None:
            return adapter_maker(self._stream_adapter)
        return None if type(self).stream_adapter is Workflow.stream_adapter else self.stream_adapter

    def _channel_maker(self) -> Callable[[], Channel | None] | None:
        given = self._channel
        if given is not None:
            return lambda: given
        return None if type(self).channel is Workflow.channel else self.channel

    def _checked_lease(self) -> float | None:
        if self.lease_timeout is not None and self.lease_timeout < MIN_LEASE:
            raise WorkflowError(f"lease_timeout must be at least {MIN_LEASE} second or None, not {self.lease_timeout!r}")
        return self.lease_timeout

    def _check_renewal(self) -> None:
        # A store that joins somebody's transaction takes calls from one thread, and the renewer is another.
        if self.lease_timeout is not None and self.lease_renewal and getattr(self._persistence, "joined", False) is True:
            raise WorkflowError("the store joins a transaction, in which no lease can be renewed: set lease_renewal=False")

    def _build(self, start: type[Event], state: WorkflowState, resources: WorkflowResources) -> Graph:
        middleware = (*check_middleware(self.middleware()), *self._middleware)
        return build_graph(self._all_nodes(), start, type(state), type(resources), middleware)

    def _all_nodes(self) -> tuple[Callable[..., Any], ...]:
        return cast(tuple[Callable[..., Any], ...], (*self.nodes(), *self._nodes))

    def _start(self) -> Start:
        return Start(
            self._default_event, self._name(), self.version, self._check_continuation, self.history, self.max_takeovers
        )

    def _check_continuation(self, path: RecordedPath) -> None:
        """Refuse a run that another version of this definition began and this one cannot continue."""
        check_version(path, self.version, tuple(self.compatible_versions))
        try:
            nodes = read_nodes(self._all_nodes())
        except Exception:  # noqa: BLE001 - a broken definition fails the run like any graph error, after the claim
            return
        check_structure(path, nodes)

    def _fresh_state(self) -> StateT:
        return (self._seed if self._seed is not None else self.state()).model_copy(deep=True)

    def _default_event(self) -> Event:
        return (self._start_event or self.start_event()).model_copy(deep=True)

    def _make_resources(self) -> WorkflowResources:
        given = self._resources
        if given is None:
            return self.resources()
        if isinstance(given, WorkflowResources):
            return given
        return given(self.workflow_id) if _takes_id(given) else given()

    def _codec(self) -> Serializer:
        return self._serializer or JsonSerializer(self._types)

    def engine(self) -> WorkflowEngine:
        """What looks at and settles runs of this definition by their workflow id alone."""
        return WorkflowEngine(self._persistence, self._codec(), clock=self._clock)

    def _name(self) -> str:
        return self.name or type(self).__qualname__


_PRIVATE = (
    "workflow_id",
    "nodes",
    "start_event",
    "resources",
    "persistence",
    "serializer",
    "branch_runner",
    "middleware",
    "listeners",
    "stream_adapter",
    "channel",
    "clock",
    "types",
    "signal_position",
)
_PUBLIC = (
    "name",
    "lease_timeout",
    "lease_renewal",
    "node_timeout",
    "max_steps",
    "retain_completion",
    "retain_for",
    "retry",
    "max_takeovers",
    "history",
    "version",
    "compatible_versions",
)
_ATTRIBUTES = {**{option: f"_{option}" for option in _PRIVATE}, **{option: option for option in _PUBLIC}, "state": "_seed"}


_KEPT: dict[str, Callable[[Any], Any]] = {
    "nodes": tuple,
    "types": tuple,
    "compatible_versions": tuple,
    "middleware": check_middleware,
    "listeners": check_listeners,
}


def _as_is(value: Any) -> Any:
    return value


def _unknown_option(option: str) -> str:
    raise WorkflowError(f"there is no option {option!r}: use one of {', '.join(sorted(_ATTRIBUTES))}")


def _takes_id(factory: Callable[..., Any]) -> bool:
    """Whether a resource factory wants the workflow id. The optional parameters of a class mean something else."""
    parameters = inspect.signature(factory).parameters.values()
    return any(parameter.default is parameter.empty or not isinstance(factory, type) for parameter in parameters)


def _state_class(cls: type[Any]) -> type[WorkflowState]:
    """The class named in ``Workflow[…]`` by the nearest base that names one."""
    for base in cls.__mro__:
        for parent in get_original_bases(base) if "__orig_bases__" in base.__dict__ else ():
            for argument in getattr(parent, "__args__", ()):
                if isinstance(argument, type) and issubclass(argument, WorkflowState):
                    return argument
    return WorkflowState
