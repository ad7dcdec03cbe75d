"""Middleware: code around the call of a node, for concerns that every node shares."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

from workflow.errors import GraphError
from workflow.events import Event
from workflow.node import Node
from workflow.resources import WorkflowResources
from workflow.state import WorkflowState

__all__ = ["Middleware", "MiddlewareLike", "check_middleware", "middleware_of"]


class Middleware:
    """Override `before`, `after` or both; either may be ``async``.

    All befores run in the order of registration, then the node, then all afters in the same order. What `after` does to the
    state is recorded with the step. An exception fails the run. Nothing is called for a step that is replayed, and no `after`
    for a node that suspends or fails; on the resume `before` is called again.
    """

    def before(
        self, node: Any, event: Event, state: WorkflowState, resources: WorkflowResources
    ) -> Event | Awaitable[Event | None] | None:
        """Before the node. May return another event of the same class, which the node then gets."""

    def after(self, node: Any, result: Event, state: WorkflowState, resources: WorkflowResources) -> Awaitable[None] | None:
        """After the node has returned ``result``."""


MiddlewareLike = Middleware | tuple[Any, Middleware]
"""A middleware for every node, or (node class or function, middleware) for these nodes."""


def check_middleware(given: Iterable[MiddlewareLike]) -> tuple[MiddlewareLike, ...]:
    """All of it, or a `GraphError` that names the first entry that is none: nothing is registered by halves."""
    entries = tuple(given)
    for entry in entries:
        target, middleware = entry if isinstance(entry, tuple) else (Node, entry)
        if not isinstance(cast(object, middleware), Middleware):
            raise GraphError(f"{middleware!r} is no middleware: hand in an instance of a Middleware subclass")
        if not _may_be_node(target):
            raise GraphError(f"middleware for {target!r}: name a node class or a node function")
    return entries


def middleware_of(node: Callable[..., Any], entries: Sequence[MiddlewareLike]) -> tuple[Middleware, ...]:
    """What surrounds one node, in the order of registration: that for every node first, then that for its class."""
    everywhere = [entry for entry in entries if isinstance(entry, Middleware)]
    targeted = [entry[1] for entry in entries if isinstance(entry, tuple) and _is_meant(node, entry[0])]
    return (*everywhere, *targeted)


def _may_be_node(target: Any) -> bool:
    """Whether this is a node function, or a class of which there can be nodes."""
    if not isinstance(target, type):
        return inspect.isroutine(target)
    return issubclass(target, Node) or any("__call__" in vars(base) for base in target.__mro__)


def _is_meant(node: Callable[..., Any], target: Any) -> bool:
    return isinstance(node, target) if isinstance(target, type) else node is target
