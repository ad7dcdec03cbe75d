"""`Workflow`: a reusable definition. No run changes it; each segment resolves what it needs when it begins."""

import copy
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, cast

from typing_extensions import TypeVar, get_original_bases

from persistence import InMemoryPersistence, Persistence
from workflow.admission import Admitted, admit, record_start
from workflow.bridge import DirectHost, Host, LoopHost, drive, refuse_on_event_loop
from workflow.clock import Clock, SystemClock
from workflow.engine import WorkflowEngine, WorkflowRunSnapshot
from workflow.errors import WorkflowError
from workflow.events import Event, StartEvent
from workflow.graph import Graph, build_graph
from workflow.ids import check_workflow_id
from workflow.node import Node
from workflow.requests import ExecutionRequest
from workflow.resources import WorkflowResources
from workflow.segment import Plan, Segment
from workflow.serializer import JsonSerializer, Serializer
from workflow.settled import outcome_state, waiting_state
from workflow.state import WorkflowState
from workflow.store import RunStore

__all__ = ["AsyncWorkflow", "Workflow"]

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
        clock: Clock | None = None,
        types: Iterable[type] = (),
    ) -> None:
        self._workflow_id = workflow_id
        self._nodes = tuple(nodes)
        self._start_event = start_event
        self._seed = state
        self._resources = resources
        self._persistence: Persistence = persistence if persistence is not None else InMemoryPersistence()
        self._serializer = serializer
        self._clock: Clock = clock or SystemClock()
        self._types = tuple(types)
        given = {
            "lease_timeout": lease_timeout,
            "lease_renewal": lease_renewal,
            "node_timeout": node_timeout,
            "max_steps": max_steps,
            "retain_completion": retain_completion,
            "retain_for": retain_for,
        }
        for option, value in given.items():
            if value is not UNSET:
                setattr(self, option, value)

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

    @property
    def has_resources(self) -> bool:
        """Whether the definition says itself where its resources come from."""
        return self._resources is not None or type(self).resources is not Workflow.resources

    # --- changed copies -----------------------------------------------------------------------------------------------------

    def reconfigure(self, **changes: Any) -> Self:
        """A copy with other constructor arguments. Raises `WorkflowError` naming an argument that does not exist."""
        made = copy.copy(self)
        for option, value in changes.items():
            kept = tuple(value) if option in ("nodes", "types") else value
            setattr(made, _ATTRIBUTES.get(option) or _unknown_option(option), kept)
        return made

    def for_id(self, workflow_id: str) -> Self:
        """A copy bound to a workflow id."""
        return self.reconfigure(workflow_id=workflow_id)

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
        return drive(self._run(request, DirectHost()))

    def ignite(self, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None) -> str:
        """Record a start without executing it, and return its run id. Whoever continues the run executes it."""
        request = ExecutionRequest.start(event, run_id=run_id, tag=tag)
        return record_start(self._store(), request, self._default_event(), self._name())

    @property
    def aio(self) -> "AsyncWorkflow[StateT]":
        """The same calls for asyncio."""
        return AsyncWorkflow(self)

    async def _run(self, request: ExecutionRequest | None, host: Host) -> StateT:
        asked = request or ExecutionRequest.start(recover_failed=True)
        store, plan = self._store(), self._plan()
        try:
            admitted = await host.finishing(lambda: admit(store, asked, self._default_event(), self._name()))
        except BaseException as error:
            # Whoever is cancelled here may have claimed the run already.
            await host.finishing(lambda: store.fail(error))
            raise
        match admitted:
            case Admitted.OUTCOME:
                return outcome_state(store, plan.seed())
            case Admitted.WAITING:
                return waiting_state(store, plan.seed())
            case Admitted.SEGMENT:
                return await Segment(plan, store, host).run()

    # --- settling -----------------------------------------------------------------------------------------------------------

    def inspect(self) -> WorkflowRunSnapshot | None:
        """See `WorkflowEngine.inspect`."""
        return self._engine().inspect(self.workflow_id)

    def abandon(self, run_id: str | None = None, execution_attempt: int | None = None) -> bool:
        """See `WorkflowEngine.abandon`."""
        return self._engine().abandon(self.workflow_id, run_id, execution_attempt)

    def acknowledge(self, run_id: str) -> None:
        """See `WorkflowEngine.acknowledge`."""
        self._engine().acknowledge(self.workflow_id, run_id)

    # --- what a call resolves -----------------------------------------------------------------------------------------------

    def _store(self) -> RunStore:
        store = RunStore(self._persistence, self._codec(), self.workflow_id, self._clock)
        store.lease_timeout = self._checked_lease()
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
            retain_completion=self.retain_completion or self.retain_for is not None,
            retain_for=self.retain_for,
        )

    def _checked_lease(self) -> float | None:
        if self.lease_timeout is not None and self.lease_timeout < MIN_LEASE:
            raise WorkflowError(f"lease_timeout must be at least {MIN_LEASE} second or None, not {self.lease_timeout!r}")
        return self.lease_timeout

    def _build(self, start: type[Event], state: WorkflowState, resources: WorkflowResources) -> Graph:
        return build_graph(
            cast(tuple[Callable[..., Any], ...], (*self.nodes(), *self._nodes)), start, type(state), type(resources)
        )

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

    def _engine(self) -> WorkflowEngine:
        return WorkflowEngine(self._persistence, self._codec(), clock=self._clock)

    def _name(self) -> str:
        return self.name or type(self).__qualname__


class AsyncWorkflow(Generic[StateT]):
    """A workflow's calls for asyncio: the core runs on the caller's loop, the store and synchronous nodes in threads."""

    def __init__(self, workflow: Workflow[StateT]) -> None:
        self._workflow = workflow

    async def run(self, request: ExecutionRequest | None = None) -> StateT:
        """See `Workflow.run`."""
        return await self._workflow._run(request, LoopHost())  # pyright: ignore[reportPrivateUsage]

    async def ignite(self, event: Event | None = None, *, run_id: str | None = None, tag: str | None = None) -> str:
        """See `Workflow.ignite`."""
        return await LoopHost().blocking(lambda: self._workflow.ignite(event, run_id=run_id, tag=tag))

    async def inspect(self) -> WorkflowRunSnapshot | None:
        """See `Workflow.inspect`."""
        return await LoopHost().blocking(self._workflow.inspect)

    async def abandon(self, run_id: str | None = None, execution_attempt: int | None = None) -> bool:
        """See `Workflow.abandon`."""
        return await LoopHost().blocking(lambda: self._workflow.abandon(run_id, execution_attempt))

    async def acknowledge(self, run_id: str) -> None:
        """See `Workflow.acknowledge`."""
        await LoopHost().blocking(lambda: self._workflow.acknowledge(run_id))


_PRIVATE = ("workflow_id", "nodes", "start_event", "resources", "persistence", "serializer", "clock", "types")
_PUBLIC = ("name", "lease_timeout", "lease_renewal", "node_timeout", "max_steps", "retain_completion", "retain_for")
_ATTRIBUTES = {**{option: f"_{option}" for option in _PRIVATE}, **{option: option for option in _PUBLIC}, "state": "_seed"}


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
