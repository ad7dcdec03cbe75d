"""`jarvis graph`: a registered workflow as a picture, and how far a run of it has come. It only reads."""

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.errors import ConsoleError, MisuseError
from console.output import show, show_json

if TYPE_CHECKING:
    from console.joining import Joined
    from workers.settings import Settings
    from workflow import Workflow
    from workflow.exporting import Picture, Progress

__all__ = ["graph", "picture_json", "sample_id"]


def graph(
    name: Annotated[str, typer.Argument(help="The name under which the workflow is registered.")],
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print it in the language of Mermaid.")] = False,
    run: Annotated[str | None, typer.Option(help="Mark how far the run of this workflow id has come.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Show the nodes and events of a workflow. With --run: ✓ done, ▶ running or waiting, ✗ failed."""
    from workers.settings import Settings
    from workflow import ConsoleExporter, MermaidExporter

    if mermaid and as_json:
        raise MisuseError("--mermaid and --json ask for two things: use one of them")
    picture, progress = _looked_up(Settings.load(), name, run)
    if as_json:
        show_json(picture_json(name, picture, progress))
    else:
        show((MermaidExporter(progress) if mermaid else ConsoleExporter(progress)).export(picture))


def sample_id(name: str, today: dt.date) -> str:
    """A workflow id of which a definition can be made, for a picture that is of no run. Nothing is kept under it."""
    from mesh.briefing import briefing_id
    from workers.definitions import BRIEFING

    return briefing_id(today) if name == BRIEFING else f"{name}-sample"


def picture_json(name: str, picture: "Picture", progress: "Progress | None") -> dict[str, Any]:
    """The picture as one JSON object."""
    return {
        "workflow": name,
        "roots": list(picture.roots),
        "boxes": [
            {
                "id": box.id,
                "kind": "event" if box.step is None else "node",
                "label": box.label,
                "step": box.step,
                "mark": mark.value if progress is not None and (mark := progress.mark(box.step)) else None,
            }
            for box in picture.boxes.values()
        ],
        "edges": [{"source": edge.source, "target": edge.target, "label": edge.label} for edge in picture.edges],
    }


def _looked_up(settings: "Settings", name: str, run: str | None) -> "tuple[Picture, Progress | None]":
    from workers import registry

    registry.load_modules(settings.modules)
    if run is None:
        today = dt.datetime.now(settings.mesh.operator.tzinfo).date()
        return _drawn(_definition(name, sample_id(name, today))), None
    picture = _drawn(_definition(name, run))

    from console.joining import visit

    return picture, visit(settings, lambda mesh: _progress(mesh, name, run))


def _definition(name: str, workflow_id: str) -> "Workflow[Any]":
    """What the registered factory makes of the id. It is other people's code: whatever it raises is one line."""
    from workers import registry

    if name not in registry.names():
        raise MisuseError(f"there is no workflow {name!r}: known are {', '.join(registry.names()) or 'none'}")
    try:
        return registry.definition(name, workflow_id)
    except Exception as refusal:
        raise ConsoleError(
            f"workflow {name!r} cannot be made for the id {workflow_id!r} ({refusal}): name one of its ids with --run"
        ) from refusal


def _drawn(definition: "Workflow[Any]") -> "Picture":
    from workflow import WorkflowError

    try:
        return definition.picture()
    except WorkflowError:
        raise
    except Exception as trouble:
        kind = type(trouble).__qualname__
        raise ConsoleError(f"the definition {type(definition).__name__} has an error ({kind}: {trouble})") from trouble


def _progress(mesh: "Joined", name: str, workflow_id: str) -> "Progress":
    from workflow.exporting import read_progress

    runtime = mesh.client.runtime
    entry = runtime.store.entry(workflow_id)
    if entry is not None and entry.name != name:
        raise MisuseError(
            f"the run of {workflow_id!r} is one of {entry.name!r}: `jarvis graph {entry.name} --run {workflow_id}`"
        )
    progress = read_progress(runtime.definition(name, workflow_id))
    if progress is None:
        raise ConsoleError(f"there is no run of {workflow_id!r}: it has ended and is not kept, or never began")
    return progress
