"""What listeners are told: frozen values, each with its source, its branch and the execution that it belongs to.

Whatever starts also ends, whichever way: a ``…Started`` is followed by its ``…Ended`` with the outcome. Only what is executed
is reported: a replayed step, a recorded memo, an idle poll, a retained outcome and a refused call report nothing.
"""

import copy
import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from workflow.errors import WorkflowError
from workflow.interrupts import InterruptRequest

__all__ = [
    "BranchEnded",
    "BranchStarted",
    "ChannelFailed",
    "Ending",
    "ExecutionContext",
    "ItemEmitted",
    "Listener",
    "ListenerFailed",
    "MemoEnded",
    "MemoStarted",
    "MiddlewareEnded",
    "MiddlewareStarted",
    "NodeEnded",
    "NodeStarted",
    "Observation",
    "Phase",
    "WorkflowEnded",
    "WorkflowFailed",
    "WorkflowInterrupted",
    "WorkflowStarted",
    "check_listeners",
]


class Ending(enum.Enum):
    """How something that started has ended."""

    COMPLETED = "completed"
    SUSPENDED = "suspended"
    """It goes no further in this segment: it waits, or it is held back."""
    FAILED = "failed"
    """It raised, or was cancelled."""


class Phase(enum.Enum):
    """Which hook of a middleware runs."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """The execution that an observation belongs to. ``name`` is the definition's."""

    workflow_id: str
    run_id: str
    attempt: int
    name: str
    tag: str | None
    _start_event: Any = field(repr=False)

    @property
    def start_event(self) -> Any:
        """What the run was started with: a copy, made for whoever asks."""
        return copy.deepcopy(self._start_event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The base of all. ``source`` is the step name of a node, or the name of the definition; ``branch`` as in `branch_id`."""

    execution: ExecutionContext
    source: str
    branch: str | None = None


# --- the segment ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowStarted(Observation):
    """A segment begins to walk. ``nodes`` are the step names of its graph. A segment without a valid graph never gets here."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInterrupted(Observation):
    """The run is suspended, and that is recorded."""

    request: InterruptRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowFailed(Observation):
    """The segment has ended with an error, which its caller gets."""

    error: BaseException


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEnded(Observation):
    """The last one of every segment, after whatever it settled has been recorded. ``seconds`` since its claim."""

    outcome: Ending
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFailed(Observation):
    """The channel has raised, or was given up as too slow. The run goes on."""

    error: BaseException


# --- what it executes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchStarted(Observation):
    """A pass over an open branch begins. It may only replay, or pause at once: a pass is not an execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchEnded(Observation):
    """That pass is over; completed means that the branch has its result."""

    outcome: Ending
    seconds: float
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(Observation):
    """A node is about to be called, with the middleware around it."""

    step_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnded(Observation):
    """The node has ended. Its step is recorded after this."""

    step_id: str
    outcome: Ending
    seconds: float
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddlewareStarted(Observation):
    """A hook of a middleware, named by its class, is about to be called."""

    step_id: str
    middleware: str
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddlewareEnded(Observation):
    """That hook has ended."""

    step_id: str
    middleware: str
    phase: Phase
    outcome: Ending
    seconds: float
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoStarted(Observation):
    """The closure of a memo is about to run. A memo that is recorded already reports nothing."""

    step_id: str
    memo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoEnded(Observation):
    """The memo is recorded, or did not come to be."""

    step_id: str
    memo: str
    outcome: Ending
    seconds: float
    error: BaseException | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemEmitted(Observation):
    """A node has emitted or yielded a live item; here it is, untouched. The one observation whose listeners may object."""

    step_id: str
    item: Any


# --- listeners --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerFailed(Observation):
    """Another listener has raised ``error`` at ``observation``. It has the source and the branch of that one."""

    observation: Observation
    error: BaseException


Listener = Callable[[Observation], object]
"""Called for each observation, at once, in the thread or on the event loop where it happens, by several branches at a time.

Be quick, and do not block. What it raises is logged and told to the other listeners; the run goes on. Only an `ItemEmitted` is
the node's own: what a listener raises then comes out of the node's ``emit()``.
"""


def check_listeners(given: Iterable[Listener]) -> tuple[Listener, ...]:
    """All of them, or a `WorkflowError` that names the first one that cannot be called."""
    listeners = tuple(given)
    for listener in listeners:
        if isinstance(listener, type) or not callable(cast(object, listener)):
            raise WorkflowError(f"{listener!r} is no listener: hand in a function, or an object with `__call__`")
    return listeners
