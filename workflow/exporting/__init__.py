"""Pictures of a workflow: its nodes and events as a graph, drawn as text, and coloured by the progress of a run."""

from workflow.exporting.console import ConsoleExporter
from workflow.exporting.mermaid import MermaidExporter
from workflow.exporting.model import Box, Edge, Exporter, Picture, draw
from workflow.exporting.progress import Mark, Progress, read_progress

__all__ = [
    "Box",
    "ConsoleExporter",
    "Edge",
    "Exporter",
    "Mark",
    "MermaidExporter",
    "Picture",
    "Progress",
    "draw",
    "read_progress",
]
