"""A picture in the language of Mermaid, which many pages and editors draw."""

from collections.abc import Iterator

from workflow.exporting.model import Box, Edge, Picture
from workflow.exporting.progress import Mark, Progress

__all__ = ["MermaidExporter"]

INDENT = "    "
STYLES = {
    Mark.DONE: "fill:#d3f9d8,stroke:#2b8a3e,color:#000000",
    Mark.CURRENT: "fill:#fff3bf,stroke:#e67700,color:#000000",
    Mark.FAILED: "fill:#ffe3e3,stroke:#c92a2a,color:#000000",
}
"""Colours that can be read on a light and on a dark page."""
_ENTITIES = str.maketrans({sign: f"#{ord(sign)};" for sign in '"#&<>`|\\'})
"""Signs that mean something to Mermaid, or to the page, even between quotes: as character codes."""


class MermaidExporter:
    """Draws a flowchart from the top down. With the ``progress`` of a run its nodes are coloured."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def export(self, picture: Picture) -> str:
        """See `Exporter.export`."""
        lines = [_box(box) for box in picture.boxes.values()]
        lines += [_edge(edge) for edge in picture.edges]
        if self._progress is not None:
            lines += _colours(picture, self._progress)
        return "\n".join(["graph TD", *(INDENT + line for line in lines)])


def _box(box: Box) -> str:
    return f"{box.id}[{_quoted(box.label)}]" if box.step is None else f"{box.id}[[{_quoted(box.label)}]]"


def _edge(edge: Edge) -> str:
    label = f"|{_quoted(edge.label)}|" if edge.label else ""
    return f"{edge.source} -->{label} {edge.target}"


def _colours(picture: Picture, progress: Progress) -> Iterator[str]:
    for mark, style in STYLES.items():
        marked = [box.id for box in picture.boxes.values() if progress.mark(box.step) is mark]
        if marked:
            yield f"classDef {mark.value} {style}"
            yield f"class {','.join(marked)} {mark.value}"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ENTITIES)}"'
