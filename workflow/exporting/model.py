"""The picture of a workflow as plain values: which boxes there are, and which leads to which. Exporters make text of it.

It is read off the nodes alone: no store and no resources are asked. An event's box leads to the node that handles it, a node's
box to the events that may follow. A fork that declares its branches leads to the first event of each, and a branch ends where
it meets the others: the stop event of its last node is an edge to the join.

A node may say itself what follows it, where its annotation says too little: ``described_transitions`` is a sequence of event
classes, or a mapping of edge labels to event classes.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from workflow.errors import GraphError
from workflow.events import Event, StartEvent, StopEvent
from workflow.exporting.labels import Ids, label_of, plain
from workflow.graph import NodeSpec, read_nodes
from workflow.parallel import ParallelEvent

__all__ = ["Box", "Edge", "Exporter", "Picture", "draw"]


@dataclass(frozen=True, slots=True)
class Box:
    """One box. ``step`` is a node's name in records, None for an event; ``join`` is the box in which a fork's branches meet."""

    id: str
    label: str
    step: str | None = None
    join: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """One box leads to another, by their ids. The label names a branch, or what a node says of the transition."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The whole graph. Everything can be reached from ``roots``: the start event, then events to which nothing leads."""

    roots: tuple[str, ...]
    boxes: Mapping[str, Box]
    edges: tuple[Edge, ...]
    steps: Mapping[type[Event], str]
    """The name of the step that handles an event."""


class Exporter(Protocol):
    """Makes text of a picture."""

    def export(self, picture: Picture) -> str:
        """The picture as text, without a line end behind it."""
        ...


def draw(nodes: Iterable[Callable[..., Any]], start: type[Event]) -> Picture:
    """The picture of these nodes, for runs that begin with an event of class ``start``.

    Raises `GraphError` for nodes that cannot route, and for a start event without a node. Plain `StartEvent` may have none:
    then every run brings an event of its own.
    """
    handlers = read_nodes(nodes)
    if start not in handlers and start is not StartEvent:
        raise GraphError(f"no node handles the start event {start.__qualname__}: add one, or start with another event")
    drawing = _Drawing(handlers)
    targets = set(drawing.targets())
    begins = [start] if start in handlers else []
    # Behind the start, first what nothing leads to, so that cycles among the nodes that are left have an entry.
    for event in (*begins, *sorted(handlers, key=lambda handled: handled in targets)):
        drawing.begin(event)
    return drawing.picture()


@dataclass(frozen=True, slots=True)
class _Branch:
    """Being inside a branch: its stop event leads to the join."""

    name: str
    fork: type[Event]
    join: str
    outer: "_Branch | None"

    def opens(self, fork: type[Event]) -> bool:
        """Whether this branch, or one around it, is of that fork."""
        return self.fork is fork or (self.outer is not None and self.outer.opens(fork))


@dataclass(frozen=True, slots=True)
class _Place:
    """An event, as it is met in one branch or outside of all."""

    event: type[Event]
    branch: _Branch | None = None


class _Drawing:
    """A picture in the making. Each place is visited once, so that cycles end."""

    def __init__(self, handlers: Mapping[type[Event], NodeSpec]) -> None:
        self._handlers = handlers
        self._transitions = {event: _transitions(spec) for event, spec in handlers.items()}
        self._ids = Ids()
        self._boxes: dict[type[Event] | str, Box] = {}
        self._edges: dict[Edge, None] = {}
        self._places: set[_Place] = set()
        self._roots: list[str] = []

    def targets(self) -> Iterator[type[Event]]:
        """Every event to which something leads."""
        for transitions in self._transitions.values():
            for _, event in transitions:
                yield event
                yield from _branches(event).values()

    def begin(self, event: type[Event]) -> None:
        """Draw everything that follows an event, unless it has been met."""
        if any(place.event is event for place in self._places):
            return
        self._roots.append(self._event(event).id)
        ahead = deque([_Place(event)])
        while ahead:
            place = ahead.popleft()
            if place not in self._places:
                self._places.add(place)
                ahead.extend(self._fork(place))
                ahead.extend(self._handle(place))

    def picture(self) -> Picture:
        """What has been drawn."""
        boxes = {box.id: box for box in self._boxes.values()}
        steps = {event: spec.step_name for event, spec in self._handlers.items()}
        return Picture(tuple(self._roots), boxes, tuple(self._edges), steps)

    def _fork(self, place: _Place) -> Iterator[_Place]:
        """Draw the branches that an event opens. Gives the places where they begin."""
        split = self._event(place.event)
        for name, first in _branches(place.event).items():
            self._lead(split.id, self._event(first).id, name)
            # A fork inside a branch of its own has the same branches again: they are drawn.
            if place.branch is None or not place.branch.opens(place.event):
                inside = None if split.join is None else _Branch(name, place.event, split.join, place.branch)
                yield _Place(first, inside or place.branch)

    def _handle(self, place: _Place) -> Iterator[_Place]:
        """Draw the node that handles an event, and what it leads to. Gives the places that follow."""
        spec = self._handlers.get(place.event)
        if spec is None:
            return
        node = self._node(spec)
        if not _branches(place.event):
            self._lead(self._event(place.event).id, node.id)
        for label, event in self._transitions[place.event]:
            if place.branch is not None and issubclass(event, StopEvent):
                self._lead(node.id, place.branch.join, place.branch.name)
            else:
                self._lead(node.id, self._event(event).id, label)
                yield _Place(event, place.branch)

    def _lead(self, source: str, target: str, label: str = "") -> None:
        self._edges[Edge(source, target, plain(label))] = None

    def _event(self, event: type[Event]) -> Box:
        if event not in self._boxes:
            label = label_of(event)
            made = self._ids.take(label)
            spec = self._handlers.get(event) if _branches(event) else None
            self._boxes[event] = Box(made, label, join=self._node(spec).id if spec else None)
        return self._boxes[event]

    def _node(self, spec: NodeSpec) -> Box:
        if spec.step_name not in self._boxes:
            label = label_of(spec.call)
            self._boxes[spec.step_name] = Box(self._ids.take(label), label, step=spec.step_name)
        return self._boxes[spec.step_name]


def _branches(event: type[Event]) -> Mapping[str, type[Event]]:
    return event.declared_branches if issubclass(event, ParallelEvent) else {}


def _transitions(spec: NodeSpec) -> tuple[tuple[str, type[Event]], ...]:
    """What may follow a node, each with the label of its edge: as the node describes it, else as it is annotated."""
    described: Any = getattr(spec.call, "described_transitions", None)
    if described is None:
        return tuple(("", event) for event in spec.shape.returns)
    if not isinstance(described, Iterable):
        raise _misdescribed(spec)
    labels = cast(Mapping[Any, Any], described) if isinstance(described, Mapping) else None
    pairs = labels.items() if labels is not None else [("", event) for event in cast(Iterable[Any], described)]
    return tuple(_described(spec, label, event) for label, event in pairs)


def _described(spec: NodeSpec, label: Any, event: Any) -> tuple[str, type[Event]]:
    if not isinstance(label, str) or not isinstance(event, type) or not issubclass(event, Event):
        raise _misdescribed(spec)
    return label, event


def _misdescribed(spec: NodeSpec) -> GraphError:
    wanted = "a sequence of event classes, or a mapping of labels to event classes"
    return GraphError(f"node {spec.step_name!r}: its `described_transitions` must be {wanted}")
