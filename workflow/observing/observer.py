"""Telling listeners: the one place where they are called, and the brackets that pair each start with its end.

A segment fixes its listeners when it begins. Without any, everything here is one shared object that does nothing.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

from workflow.interrupts import InterruptRequest
from workflow.observing.observations import (
    BranchEnded,
    BranchStarted,
    ChannelFailed,
    Ending,
    ExecutionContext,
    ItemEmitted,
    Listener,
    ListenerFailed,
    MemoEnded,
    MemoStarted,
    MiddlewareEnded,
    MiddlewareStarted,
    NodeEnded,
    NodeStarted,
    Observation,
    Phase,
    WorkflowEnded,
    WorkflowFailed,
    WorkflowInterrupted,
    WorkflowStarted,
)
from workflow.output import Output
from workflow.store import RunStore
from workflow.suspension import is_suspension

__all__ = ["SILENT", "SILENT_STEP", "Bracket", "Observer", "StepObserver", "observer_of"]

_log = logging.getLogger(__name__)


class Bracket:
    """Around something that is observed. This one tells nobody."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def suspended(self) -> None:
        """It ends without an error, but goes no further in this segment."""


class _Told(Bracket):
    """Tells the start, and the end whichever way it comes."""

    def __init__(self, tell: Callable[[Observation], None], start: Observation, end: Callable[..., Observation]) -> None:
        self._tell = tell
        self._start = start
        self._end = end
        self._outcome = Ending.COMPLETED

    def __enter__(self) -> Self:
        self._tell(self._start)
        self._began = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        seconds = time.perf_counter() - self._began
        if error is not None and is_suspension(error):
            self._outcome, error = Ending.SUSPENDED, None
        outcome = self._outcome if error is None else Ending.FAILED
        self._tell(self._end(outcome=outcome, seconds=seconds, error=error))

    def suspended(self) -> None:
        """See `Bracket.suspended`."""
        self._outcome = Ending.SUSPENDED


_SILENT_BRACKET = Bracket()


class StepObserver:
    """Observes one execution of one step. This one tells nobody."""

    def node(self) -> Bracket:
        """Around the node and its middleware."""
        return _SILENT_BRACKET

    def middleware(self, middleware: object, phase: Phase) -> Bracket:
        """Around one hook."""
        return _SILENT_BRACKET

    def memo(self, name: str) -> Bracket:
        """Around the making of a memo, and its record."""
        return _SILENT_BRACKET

    def output(self, output: Output) -> Output:
        """The output for this step's items."""
        return output


class Observer:
    """Observes one segment. This one tells nobody."""

    def started(self, nodes: tuple[str, ...]) -> None:
        """The graph stands, and the walk begins."""

    def settled(self, request: InterruptRequest | None) -> None:
        """The run is completed, or waits for ``request``; it is recorded."""

    def failed(self, error: BaseException) -> None:
        """The segment ends with an error; it is recorded, if the run is still ours."""

    def channel_failed(self, error: BaseException) -> None:
        """Frames do not get through; the run goes on."""

    def branch(self, name: str) -> Bracket:
        """Around one pass over a branch."""
        return _SILENT_BRACKET

    def step(self, name: str, step_id: str, branch: str | None) -> StepObserver:
        """For one execution of a step."""
        return SILENT_STEP


SILENT = Observer()
SILENT_STEP = StepObserver()


def observer_of(listeners: tuple[Listener, ...], store: RunStore) -> Observer:
    """The observer of a segment that has just claimed its run."""
    return _TellingObserver(listeners, store) if listeners else SILENT


class _TellingObserver(Observer):
    def __init__(self, listeners: tuple[Listener, ...], store: RunStore) -> None:
        control, ignition = store.control, store.ignition
        self._listeners = listeners
        self.execution = ExecutionContext(
            store.workflow_id, control.run_id, control.attempt, ignition.name, ignition.tag, ignition.start_event
        )
        self._began = time.perf_counter()

    def started(self, nodes: tuple[str, ...]) -> None:
        self.tell(WorkflowStarted(**self._whole, nodes=nodes))

    def settled(self, request: InterruptRequest | None) -> None:
        if request is not None:
            self.tell(WorkflowInterrupted(**self._whole, request=request))
        self._ended(Ending.COMPLETED if request is None else Ending.SUSPENDED)

    def failed(self, error: BaseException) -> None:
        self.tell(WorkflowFailed(**self._whole, error=error))
        self._ended(Ending.FAILED)

    def channel_failed(self, error: BaseException) -> None:
        self.tell(ChannelFailed(**self._whole, error=error))

    def branch(self, name: str) -> Bracket:
        where: dict[str, Any] = {**self._whole, "branch": name}
        return _Told(self.tell, BranchStarted(**where), partial(BranchEnded, **where))

    def step(self, name: str, step_id: str, branch: str | None) -> StepObserver:
        return _TellingStep(self, {"execution": self.execution, "source": name, "branch": branch, "step_id": step_id})

    def tell(self, observation: Observation) -> None:
        """Tell everybody. Nobody can alter the run: what a listener raises is logged, and told to the others once."""
        for listener in self._listeners:
            try:
                listener(observation)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - whatever it raises, be it a signal of the engine or of asyncio
                self._report(listener, observation, error)

    def tell_item(self, item: ItemEmitted) -> None:
        """Tell everybody of what a node emits. What a listener raises is raised in the node."""
        for listener in self._listeners:
            listener(item)

    def _report(self, failed: Listener, observation: Observation, error: BaseException) -> None:
        _log.error("a listener of workflow %r raised", self.execution.workflow_id, exc_info=error)
        report = ListenerFailed(
            execution=self.execution,
            source=observation.source,
            branch=observation.branch,
            observation=observation,
            error=error,
        )
        for listener in self._listeners:
            if listener is failed:
                continue
            try:
                listener(report)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # noqa: BLE001 - it is not reported in its turn, or two of them would never come to an end
                _log.exception("a listener of workflow %r raised at a report", self.execution.workflow_id)

    def _ended(self, outcome: Ending) -> None:
        self.tell(WorkflowEnded(**self._whole, outcome=outcome, seconds=time.perf_counter() - self._began))

    @property
    def _whole(self) -> dict[str, Any]:
        """Where something is that concerns the whole segment."""
        return {"execution": self.execution, "source": self.execution.name}


class _TellingStep(StepObserver):
    def __init__(self, observer: _TellingObserver, where: dict[str, Any]) -> None:
        self._observer = observer
        self._where = where

    def node(self) -> Bracket:
        return self._told(NodeStarted, NodeEnded)

    def middleware(self, middleware: object, phase: Phase) -> Bracket:
        return self._told(MiddlewareStarted, MiddlewareEnded, middleware=type(middleware).__qualname__, phase=phase)

    def memo(self, name: str) -> Bracket:
        return self._told(MemoStarted, MemoEnded, memo=name)

    def output(self, output: Output) -> Output:
        return _ObservedOutput(output, self._item)

    def _told(self, start: Callable[..., Observation], end: Callable[..., Observation], **what: Any) -> Bracket:
        return _Told(self._observer.tell, start(**self._where, **what), partial(end, **self._where, **what))

    def _item(self, item: Any) -> None:
        self._observer.tell_item(ItemEmitted(**self._where, item=item))


@dataclass(frozen=True, slots=True)
class _ObservedOutput:
    """An output whose items listeners hear of first."""

    inner: Output
    tell: Callable[[Any], None]

    def put(self, item: Any) -> None:
        """See `Output.put`."""
        self.tell(item)
        self.inner.put(item)

    async def put_async(self, item: Any) -> None:
        """See `Output.put_async`."""
        self.tell(item)
        await self.inner.put_async(item)

    def put_at_once(self, item: Any) -> None:
        """See `Output.put_at_once`."""
        self.tell(item)
        self.inner.put_at_once(item)
