"""Which node handles which event: read off the nodes' annotations and checked before the first one runs.

Events route by exact class. A node takes an event, the state and, if it likes, the resources; its return type lists the events
that may follow. What cannot route is a `GraphError` that names node and parameter.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union, cast

from workflow.errors import GraphError, WorkflowError
from workflow.events import Event
from workflow.middleware import Middleware, MiddlewareLike, check_middleware, middleware_of
from workflow.resources import WorkflowResources
from workflow.state import WorkflowState

__all__ = ["Graph", "NodeSpec", "build_graph"]


@dataclass(frozen=True, slots=True)
class _Need:
    """What a node asks of its workflow in one parameter."""

    parameter: str
    cls: type

    def check(self, node: str, provided: type, what: str) -> None:
        """Raise `GraphError` unless what the workflow provides will do."""
        if not issubclass(provided, self.cls):
            raise GraphError(
                f"node {node!r}, parameter {self.parameter!r}: it needs {self.cls.__qualname__}, but the workflow provides "
                f"{provided.__qualname__} as its {what}"
            )


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What the code of a node says, whatever object it belongs to."""

    handles: type[Event]
    returns: tuple[type[Event], ...]
    state: _Need
    resources: _Need | None
    is_async: bool
    is_generator: bool


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node as the engine calls it."""

    call: Callable[..., Any]
    step_name: str
    shape: NodeShape

    def arguments(self, event: Event, state: WorkflowState, resources: WorkflowResources) -> tuple[Any, ...]:
        """What to call the node with."""
        return (event, state, resources) if self.shape.resources else (event, state)


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes by the event class that each handles."""

    nodes: dict[type[Event], NodeSpec]
    middleware: Sequence[MiddlewareLike] = ()

    def around(self, spec: NodeSpec) -> tuple[Middleware, ...]:
        """The middleware of one node, in the order of its registration."""
        return middleware_of(spec.call, self.middleware)

    def node_for(self, event: Event) -> NodeSpec:
        """The node for this event. Raises `WorkflowError` when no node handles its exact class."""
        spec = self.nodes.get(type(event))
        if spec is None:
            raise WorkflowError(f"no node handles {type(event).__qualname__}: add a node whose first parameter has this type")
        return spec


def read_nodes(nodes: Iterable[Callable[..., Any]]) -> dict[type[Event], NodeSpec]:
    """The nodes by what they handle, as their annotations say. Raises `GraphError`."""
    handlers: dict[type[Event], NodeSpec] = {}
    names: set[str] = set()
    for node in nodes:
        spec = _spec(node)
        if spec.shape.handles in handlers:
            other = handlers[spec.shape.handles].step_name
            raise GraphError(
                f"a handler for {spec.shape.handles.__qualname__} already exists: {other!r} and {spec.step_name!r}"
            )
        if spec.step_name in names:
            raise GraphError(f"two nodes have the step name {spec.step_name!r}: give one of them another `step_name`")
        names.add(spec.step_name)
        handlers[spec.shape.handles] = spec
    return handlers


def build_graph(
    nodes: Iterable[Callable[..., Any]],
    start: type[Event],
    state: type[WorkflowState],
    resources: type[WorkflowResources],
    middleware: Iterable[MiddlewareLike] = (),
) -> Graph:
    """The checked graph for a start event and the classes that the workflow provides. Raises `GraphError`."""
    handlers = read_nodes(nodes)
    for spec in handlers.values():
        spec.shape.state.check(spec.step_name, state, "state")
        if spec.shape.resources is not None:
            spec.shape.resources.check(spec.step_name, resources, "resources")
    if start not in handlers:
        raise GraphError(f"no node handles the start event {start.__qualname__}: add one, or start with another event")
    return Graph(handlers, check_middleware(middleware))


def _spec(node: Callable[..., Any]) -> NodeSpec:
    if isinstance(node, type) or not callable(node):
        raise GraphError(f"{node!r} is no node: give a function, or an object (not its class) with `__call__`")
    name = _step_name(node)
    function = node if inspect.isroutine(node) else type(node).__call__
    if inspect.isfunction(function):
        shape = _known_shape(name, function, not inspect.isfunction(node))
    else:
        shape = _shape(name, function, *_read_signature(node, function))
    return NodeSpec(node, name, shape)


@lru_cache(maxsize=1024)
def _known_shape(name: str, function: Any, is_method: bool) -> NodeShape:
    """`_shape` of a plain function, remembered: workers rebuild their definitions for each segment."""
    parameters, hints = _read_signature(function, function)
    return _shape(name, function, parameters[1:] if is_method else parameters, hints)


def _shape(name: str, function: Any, parameters: tuple[str, ...], hints: dict[str, Any] | str) -> NodeShape:
    """Read off the annotations. Raises `GraphError`."""
    if not 2 <= len(parameters) <= 3:
        wanted = "(event, state) or (event, state, resources)"
        raise GraphError(f"node {name!r} takes {len(parameters)} parameters: it needs {wanted}")
    if isinstance(hints, str):
        raise GraphError(f"node {name!r} {hints}")
    is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    return NodeShape(
        handles=_handled(name, parameters[0], hints),
        returns=_returned(name, hints, is_generator=is_generator),
        state=_need(name, parameters[1], hints, WorkflowState),
        resources=_need(name, parameters[2], hints, WorkflowResources) if len(parameters) == 3 else None,
        is_async=inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function),
        is_generator=is_generator,
    )


def _step_name(node: Callable[..., Any]) -> str:
    declared = getattr(node, "step_name", None)
    name = declared if isinstance(declared, str) else getattr(node, "__qualname__", None) or type(node).__qualname__
    if "::" in name or "/" in name or name.startswith("__"):
        raise GraphError(f"the step name {name!r} must not begin with '__' or hold '::' or '/': give another `step_name`")
    return cast(str, name)


def _read_signature(node: Any, function: Any) -> tuple[tuple[str, ...], dict[str, Any] | str]:
    """The names of a node's positional parameters, and its annotations, or in words why they cannot be had."""
    names = tuple(
        parameter.name
        for parameter in inspect.signature(node).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    )
    try:
        return names, typing.get_type_hints(function)
    except (NameError, AttributeError, SyntaxError) as trouble:
        return names, (f"has an annotation that cannot be resolved ({trouble}): import its class outside `if TYPE_CHECKING:`")
    except TypeError as trouble:
        return names, f"is not callable as a node: {trouble}"


def _handled(name: str, parameter: str, hints: dict[str, Any]) -> type[Event]:
    """The event class of the first parameter: one concrete class, or that or None."""
    if parameter not in hints:
        raise GraphError(f"node {name!r}, parameter {parameter!r}: annotate it with the event class that the node handles")
    classes = [option for option in _options(hints[parameter]) if option is not type(None)]
    if len(classes) != 1 or not _is_event(classes[0]):
        raise GraphError(f"node {name!r}, parameter {parameter!r}: it must be one event class, not {hints[parameter]}")
    event = cast(type[Event], classes[0])
    if event is Event or inspect.isabstract(event):
        raise GraphError(f"node {name!r}, parameter {parameter!r}: {event.__qualname__} is abstract, nothing could route to it")
    return event


def _returned(name: str, hints: dict[str, Any], *, is_generator: bool) -> tuple[type[Event], ...]:
    if "return" not in hints:
        raise GraphError(f"node {name!r}: annotate its return type with the events that may follow")
    if is_generator:
        # Of a generator only what it returns can follow; an async one yields it. Without arguments it may be any event.
        arguments = typing.get_args(hints["return"])
        parts = _options(arguments[2] if len(arguments) == 3 else arguments[0]) if arguments else ()
        return tuple(cast(type[Event], part) for part in parts if _is_event(part))
    options = [option for option in _options(hints["return"]) if option is not type(None)]
    if not options or not all(_is_event(option) for option in options):
        raise GraphError(f"node {name!r}: its return type must be one or more event classes, not {hints['return']}")
    return tuple(cast(type[Event], option) for option in options)


def _need(name: str, parameter: str, hints: dict[str, Any], root: type) -> _Need:
    needed = hints.get(parameter)
    if not isinstance(needed, type) or not issubclass(needed, root):
        raise GraphError(f"node {name!r}, parameter {parameter!r}: annotate it with a subclass of {root.__name__}")
    return _Need(parameter, needed)


def _options(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _is_event(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, Event)
