"""Nodes: the steps of a workflow. A `Node` subclass with ``__call__``, or a plain function with the same parameters."""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

from workflow import context
from workflow.interrupts import InterruptRequest

__all__ = ["Node"]

T = TypeVar("T")


class Node:
    """A step as a class: define ``__call__(self, event, state)`` or ``(self, event, state, resources)``, sync or async.

    The first parameter's type says which event the node handles, the return type which events may follow. One object may serve
    several runs at once: keep data in the state, not on the node. ``step_name`` is its stable name in records; without one the
    class's qualified name is used, and renaming the class then strands runs in flight. A generator yields live items and
    returns its event; of an async generator the last event that it yields is its result.
    """

    step_name: ClassVar[str | None] = None

    def memoize(self, name: str, fn: Callable[[], T], *, type: Any = None) -> T:  # noqa: A002 - the promised name
        """See `workflow.memoize`."""
        return context.memoize(name, fn, type=type)

    async def amemoize(self, name: str, async_fn: Callable[[], Awaitable[T]], *, type: Any = None) -> T:  # noqa: A002
        """See `workflow.amemoize`."""
        return await context.amemoize(name, async_fn, type=type)

    def recall_memo(self, name: str) -> Any:
        """See `workflow.recall_memo`."""
        return context.recall_memo(name)

    def idempotency_key(self, name: str) -> str:
        """See `workflow.idempotency_key`."""
        return context.idempotency_key(name)

    def branch_id(self) -> str | None:
        """See `workflow.branch_id`."""
        return context.branch_id()

    def emit(self, item: Any) -> None:
        """See `workflow.emit`."""
        context.emit(item)

    def interrupt(self, request: InterruptRequest) -> Any:
        """See `workflow.interrupt`."""
        return context.interrupt(request)

    def interrupt_if(self, condition: bool, request: InterruptRequest) -> Any:
        """See `workflow.interrupt_if`."""
        return context.interrupt_if(condition, request)

    def await_event(
        self,
        name: str,
        *,
        expires_at: dt.datetime | None = None,
        since: str | None = None,
        match: Mapping[str, Any] | None = None,
    ) -> Any:
        """See `workflow.await_event`."""
        return context.await_event(name, expires_at=expires_at, since=since, match=match)

    def sleep_until(self, when: dt.datetime) -> None:
        """See `workflow.sleep_until`."""
        context.sleep_until(when)
