"""What a node can do with its run while it runs: memos, waits, keys for outside systems.

The context of the step travels in a ``ContextVar``: the same node object may run in two places at once, and a function node has
the same powers as a class. Outside a step these functions raise.
"""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar, cast

from workflow.bridge import in_thread
from workflow.control import AcceptedInput, ActiveInterrupt
from workflow.errors import WorkflowError
from workflow.interrupts import START_OF_RUN, InputKind, InterruptRequest, SleepUntilRequest, WaitForEventRequest
from workflow.observing import SILENT_STEP, StepObserver
from workflow.output import NoOutput, Output
from workflow.records import ANSWER_PREFIX, DEFERRED_NAME, Answer, answer_name, memo_key
from workflow.store import RunStore
from workflow.suspension import Suspension

__all__ = [
    "StepContext",
    "Suspension",
    "amemoize",
    "await_event",
    "branch_id",
    "current_step",
    "emit",
    "entered",
    "idempotency_key",
    "in_memo",
    "interrupt",
    "interrupt_if",
    "memoize",
    "recall_memo",
    "running_step",
    "sleep_until",
]

T = TypeVar("T")


@dataclass(slots=True)
class StepContext:
    """One execution of one step. ``answered`` is the interruption whose answer this execution delivers, until it is used."""

    store: RunStore
    step_id: str
    answered: ActiveInterrupt | None = None
    output: Output = field(default_factory=NoOutput)
    unsaved: dict[str, Any] = field(default_factory=dict[str, Any])
    branch: str | None = None
    suspended_on: ActiveInterrupt | None = None
    observer: StepObserver = SILENT_STEP
    began: float = 0
    """Unix seconds."""
    position: str | None = None
    """Where on the bus the events lie that may end its waits: behind this."""
    used: list[str] = field(default_factory=list[str])
    """The entries on the bus that have ended its waits so far."""
    _positions: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])

    def key(self, name: str) -> str:
        """Where a memo of this step is kept."""
        return memo_key(self.store.control.run_id, self.step_id, name)

    def has_memo(self, name: str, annotation: Any = None) -> bool:
        """Whether a memo is recorded. Raises when its name is reserved, or when records cannot hold what is announced."""
        if name.startswith(ANSWER_PREFIX) or name == DEFERRED_NAME:
            raise WorkflowError(f"the memo name {name!r} is reserved: names must not begin with {ANSWER_PREFIX!r}")
        if annotation is not None:
            self.store.admit(annotation)
        return self.store.has(self.key(name))

    def save(self, name: str, value: Any) -> None:
        """Record a memo, and with it the answers that were used since the last write."""
        answers = dict(self.unsaved)
        self.store.commit({**answers, self.key(name): value})
        # An async node may have used another answer meanwhile.
        self.unsaved = {key: answer for key, answer in self.unsaved.items() if key not in answers}

    def using(self, answer: Answer) -> Answer:
        """The same answer; the signal that it came with ends no further wait of this step."""
        if answer.position is not None:
            self.used.append(answer.position)
        return answer

    def next_wait(self, scope: tuple[str, ...]) -> str:
        """The identity of the wait reached now: the memo closures around it, and its position among their waits."""
        position = self._positions.get(scope, 0)
        self._positions[scope] = position + 1
        return "\x00".join((*scope, str(position)))


_step: ContextVar[StepContext | None] = ContextVar("workflow_step", default=None)
_scope: ContextVar[tuple[str, ...]] = ContextVar("workflow_memo_scope", default=())


def current_step(caller: str) -> StepContext:
    """The step that runs here. Raises `WorkflowError`, naming what was called, outside one."""
    step = _step.get()
    if step is None:
        raise WorkflowError(f"{caller} works only inside a running node: call it there, or use workflow.testing.isolated()")
    return step


def running_step() -> StepContext | None:
    """The step that runs here, or None outside one."""
    return _step.get()


def in_memo() -> bool:
    """Whether this code runs within a memo's closure."""
    return bool(_scope.get())


class entered:  # noqa: N801 - reads as a statement: `with entered(step):`
    """Makes a step the current one for a block."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def __enter__(self) -> StepContext:
        self._tokens = _step.set(self._step), _scope.set(())
        return self._step

    def __exit__(self, *_: object) -> None:
        step, scope = self._tokens
        _scope.reset(scope)
        _step.reset(step)


# --- memos ------------------------------------------------------------------------------------------------------------------


def memoize(name: str, fn: Callable[[], T], *, type: Any = None) -> T:  # noqa: A002 - the promised name
    """The value of ``fn()``, run once per step and name: when the node runs again, the recorded value is returned.

    ``type`` names the class of the value when no definition has registered it; whether records can hold it is checked before
    ``fn`` runs.

    An effect outside the store can still happen twice, when the process dies between the effect and the record: hand
    `idempotency_key` to the outside system. The same name twice in one step returns the first value.
    """
    if _on_event_loop():
        raise WorkflowError(f"memoize({name!r}) would block the event loop: use `await amemoize({name!r}, …)` in async nodes")
    step = current_step("memoize()")
    if step.has_memo(name, type):
        return cast(T, step.store.value(step.key(name)))
    with step.observer.memo(name):
        with _closure(name):
            value = fn()
        step.save(name, value)
    return value


async def amemoize(name: str, async_fn: Callable[[], Awaitable[T]], *, type: Any = None) -> T:  # noqa: A002
    """`memoize` for async nodes: awaits ``async_fn()``, and writes to the store off the event loop."""
    step = current_step("amemoize()")
    if step.has_memo(name, type):
        return cast(T, step.store.value(step.key(name)))
    with step.observer.memo(name):
        with _closure(name):
            value = await async_fn()
        await in_thread(lambda: step.save(name, value))
    return value


def recall_memo(name: str) -> Any:
    """The recorded value of a memo of this step, or None. Runs nothing."""
    step = current_step("recall_memo()")
    return step.store.value(step.key(name)) if step.has_memo(name) else None


def idempotency_key(name: str) -> str:
    """A key for an outside system: the same in every execution of this step of this run, different in any other."""
    step = current_step("idempotency_key()")
    parts = (step.store.workflow_id, step.store.control.run_id, step.step_id, name)
    return sha256("\x00".join(parts).encode()).hexdigest()


class _closure:  # noqa: N801 - reads as a statement
    """Counts the waits inside a memo's closure by themselves, so that skipping the closure later shifts nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._token = _scope.set((*_scope.get(), self._name))

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._token)


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def branch_id() -> str | None:
    """The name of the innermost branch that the node runs in; None outside branches."""
    return current_step("branch_id()").branch


def emit(item: Any) -> None:
    """Hand a live item to whoever reads the run's events now. Nothing is kept; a replayed step emits nothing.

    On an event loop it returns at once; elsewhere it waits until the reader has taken the item before.
    """
    step = current_step("emit()")
    if _on_event_loop():
        step.output.put_at_once(item)
    else:
        step.output.put(item)


# --- waits ------------------------------------------------------------------------------------------------------------------


def interrupt(request: InterruptRequest) -> Any:
    """Pause the run for ``request``; once answered, the node runs again from its top and this call returns the payload.

    Waits must be reached in the same order each time; code between them runs again, so keep effects inside `memoize`.
    """
    return _wait(request, "interrupt()").payload


def interrupt_if(condition: bool, request: InterruptRequest) -> Any:
    """`interrupt` when the condition holds, else None. The condition may depend on event, state, answers and memos only."""
    return _wait(request, "interrupt_if()", condition).payload


def await_event(
    name: str, *, expires_at: dt.datetime | None = None, since: str | None = None, match: Mapping[str, Any] | None = None
) -> Any:
    """Pause until the event ``name`` is delivered and return its payload; None when ``expires_at`` passed first."""
    return _wait(WaitForEventRequest(name, expires_at, since, match), "await_event()").payload


def sleep_until(when: dt.datetime) -> None:
    """Pause until a moment. Something outside (the sweeper) continues the run then."""
    _wait(SleepUntilRequest(when), "sleep_until()")


def _wait(request: InterruptRequest, caller: str, condition: bool = True) -> Answer:
    step = current_step(caller)
    wait = step.next_wait(_scope.get())
    if step.answered is not None and step.answered.wait == wait and step.answered.input is not None:
        return step.using(_consume(step, wait, step.answered.input))
    recorded = step.store.read(step.key(answer_name(wait)), Answer.from_record)
    if recorded is not None:
        return step.using(recorded)
    if not condition:
        return Answer(None)
    if step.answered is not None:
        raise WorkflowError(
            f"a new wait ({caller}) was reached before the one being answered: a node must reach its waits in the same order "
            "every time it runs"
        )
    step.suspended_on = ActiveInterrupt(_placed(request, step), step.step_id, wait)
    raise Suspension


def _placed(request: InterruptRequest, step: StepContext) -> InterruptRequest:
    """The request with the place on the bus behind which it listens, as an opaque position."""
    if not isinstance(request, WaitForEventRequest) or not request.comes_over_the_bus:
        return request
    places = {None: step.position, START_OF_RUN: step.store.ignition.position}
    since = places.get(request.since, request.since)
    return request.model_copy(update={"since": since, "used": tuple(step.used)})


def _consume(step: StepContext, wait: str, accepted: AcceptedInput) -> Answer:
    """Use the answer, once. It is recorded with the next write; until then control still holds it."""
    answer = Answer(accepted.payload, timed_out=accepted.kind is not InputKind.EVENT, position=accepted.position)
    step.answered = None
    step.unsaved[step.key(answer_name(wait))] = answer.to_record()
    return answer
