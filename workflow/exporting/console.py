"""A picture as a tree of plain text, from the start event: one line for an event and the node that handles it."""

from collections.abc import Iterator
from dataclasses import dataclass

from workflow.exporting.model import Box, Edge, Picture
from workflow.exporting.progress import Mark, Progress

__all__ = ["ConsoleExporter"]

SIGNS = {Mark.DONE: "✓ ", Mark.CURRENT: "▶ ", Mark.FAILED: "✗ ", None: ""}
SHOWN_ABOVE = " (see above)"
JOIN = "joined"
"""Stands before the node in which the branches of a fork meet."""


class ConsoleExporter:
    """Draws a tree. With the ``progress`` of a run its nodes have marks: ✓ done, ▶ running or waiting, ✗ failed.

    What has been shown is not shown again, so cycles end. Behind a fork come its branches, then the node that joins them.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or Progress()

    def export(self, picture: Picture) -> str:
        """See `Exporter.export`."""
        tree = _Tree(picture, self._progress)
        return "\n\n".join("\n".join(tree.lines(root)) for root in picture.roots)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is still to be written: where it leads, and what stands before it and before the lines under it."""

    edge: Edge
    before: str = ""
    under: str = ""


class _Tree:
    def __init__(self, picture: Picture, progress: Progress) -> None:
        self._boxes = picture.boxes
        self._progress = progress
        self._shown: set[str] = set()
        self._leaving: dict[str, list[Edge]] = {box: [] for box in picture.boxes}
        for edge in picture.edges:
            self._leaving[edge.source].append(edge)

    def lines(self, root: str) -> Iterator[str]:
        """The lines of the tree under one event, that event first."""
        ahead = [_Line(Edge("", root))]
        while ahead:
            line = ahead.pop()
            text, following = self._written(line.edge)
            yield line.before + text
            ahead.extend(reversed(_under(line, following)))

    def _written(self, edge: Edge) -> tuple[str, list[Edge]]:
        """The text of one line, and the edges to the lines under it."""
        box = self._boxes[edge.target]
        if self._is_branch_end(edge):
            return f"{edge.label} ends at {box.label}", []
        node = self._node_of(box)
        names = f"{box.label} → {self._text(node)}" if node else self._text(box)
        last = node or box
        following = self._following(last)
        if following and last.id in self._shown:
            names, following = names + SHOWN_ABOVE, []
        self._shown.add(last.id)
        return (f"{edge.label}: {names}" if edge.label else names), following

    def _node_of(self, box: Box) -> Box | None:
        """The node that handles an event, to stand on its line. A fork's join stands behind its branches instead."""
        targets = [self._boxes[edge.target] for edge in self._leaving[box.id]] if box.step is None else []
        return next((target for target in targets if target.step is not None), None)

    def _following(self, box: Box) -> list[Edge]:
        joined = [Edge(box.id, box.join, JOIN)] if box.join is not None else []
        return [*self._leaving[box.id], *joined]

    def _is_branch_end(self, edge: Edge) -> bool:
        """Whether an edge leads from the last node of a branch to the join, which is shown behind the branches."""
        source = self._boxes.get(edge.source)
        return source is not None and source.step is not None and self._boxes[edge.target].step is not None

    def _text(self, box: Box) -> str:
        return SIGNS[self._progress.mark(box.step)] + box.label


def _under(line: _Line, following: list[Edge]) -> list[_Line]:
    if not following:
        return []
    *others, last = following
    made = [_Line(edge, f"{line.under}├─ ", f"{line.under}│  ") for edge in others]
    return [*made, _Line(last, f"{line.under}└─ ", f"{line.under}   ")]
