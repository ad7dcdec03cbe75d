"""`jarvis runs show`: one run, what it waits for and how to answer, and what happened to it."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer

from console.commands.runs.rows import RunRow, iso, row_as_json, shown_moment
from console.errors import ConsoleError
from console.output import show, show_json

if TYPE_CHECKING:
    from workers.client import MeshClient
    from workflow import WorkflowRunSnapshot
    from workflow.history import HistoryLine

__all__ = [
    "RunId",
    "RunView",
    "WorkflowId",
    "answer_command",
    "line_as_json",
    "line_of",
    "look_at",
    "show_run",
    "text_of",
    "wait_of",
]

WorkflowId = Annotated[str, typer.Argument(metavar="WORKFLOW_ID", help="As `jarvis runs list` shows it.")]
RunId = Annotated[str | None, typer.Option("--run", help="A run id, where the workflow id has had several runs.")]


def show_run(
    workflow_id: WorkflowId,
    run: RunId = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Show one run: where it stands, what it waits for and how to answer, and what happened to it."""
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    view = visit(settings, lambda mesh: look_at(mesh.client, workflow_id, run))
    if as_json:
        show_json(_as_json(view))
    else:
        for line in text_of(view, settings.mesh.operator.tzinfo):
            show(line)


@dataclass(frozen=True, slots=True)
class RunView:
    """What there is to know of one run. ``wait`` is what it waits for now; ``answered`` that its answer is there already."""

    row: RunRow
    lines: list["HistoryLine"]
    left_out: int
    wait: Mapping[str, Any] | None
    answered: bool


def look_at(client: "MeshClient", workflow_id: str, run_id: str | None) -> RunView:
    """The run of this id, or the current or last one of the workflow id. Raises `ConsoleError` when there is none."""
    past = [run for run in client.past_runs(workflow_id=workflow_id) if run_id is None or run.run_id == run_id]
    snapshot = client.inspect(workflow_id)
    current = snapshot is not None and run_id in (None, snapshot.run_id)
    if snapshot is not None and current and not (past and past[0].run_id == snapshot.run_id):
        return RunView(_row_of(client, workflow_id), [], 0, wait_of(snapshot), snapshot.input_accepted)
    if not past:
        raise ConsoleError(f"nothing is known of {_named(workflow_id, run_id)}: `jarvis runs list` shows what is")
    lines = client.history(workflow_id, run_id=past[0].run_id)
    shown = snapshot if snapshot is not None and snapshot.run_id == past[0].run_id else None
    wait, answered = (None, False) if shown is None else (wait_of(shown), shown.input_accepted)
    return RunView(RunRow.of_past(past[0]), lines, max(0, past[0].lines - len(lines)), wait, answered)


def wait_of(snapshot: "WorkflowRunSnapshot") -> dict[str, Any] | None:
    """What a run waits for, as its request shows itself."""
    return None if snapshot.interrupt is None else snapshot.interrupt.to_json()


def text_of(view: RunView, zone: ZoneInfo) -> list[str]:
    """The view for people."""
    row = view.row
    facts = [
        ("workflow", row.name),
        ("id", row.workflow_id),
        ("run", row.run_id),
        ("status", f"{row.status}{', its answer is recorded' if view.answered else ''}"),
        ("tag", row.tag),
        ("started", shown_moment(row.started, zone)),
        ("ended", None if row.ended is None else shown_moment(row.ended, zone)),
        ("attempts", str(row.attempts)),
        ("step", row.step),
        ("error", None if row.error is None else " ".join(row.error.split())),
        ("again at", None if row.retry_at is None else shown_moment(row.retry_at, zone)),
    ]
    head = [f"{name:<9} {value}" for name, value in facts if value]
    return head + _question(view) + [""] + _told(view, zone)


def _question(view: RunView) -> list[str]:
    if view.wait is None:
        return []
    shown = [f"waits for #{view.wait['interruptId']}: {json.dumps(dict(view.wait), ensure_ascii=False, default=str)}"]
    if view.answered or view.wait.get("type") != "wait_for_event":
        return shown
    return [*shown, f"answer it: {answer_command(view.row.workflow_id, view.row.run_id, view.wait)}"]


def answer_command(workflow_id: str, run_id: str, wait: Mapping[str, Any]) -> str:
    """What to type to answer this very question."""
    asks = f"--run {run_id} --interrupt {wait['interruptId']}"
    if wait.get("eventName") == "approval":
        return f"jarvis runs approve {shlex.quote(workflow_id)} {asks}"
    return f"jarvis runs answer {shlex.quote(workflow_id)} {asks} 'JSON'"


def _told(view: RunView, zone: ZoneInfo) -> list[str]:
    if not view.lines:
        return ["this run keeps no history"]
    left_out = [f"({view.left_out} lines of its middle are not kept)"] if view.left_out else []
    return [*(line_of(line, zone) for line in view.lines), *left_out]


def line_of(line: "HistoryLine", zone: ZoneInfo) -> str:
    """One line of history for people."""
    parts = [
        shown_moment(line.at, zone),
        f"{line.kind.value:<9}",
        f"attempt {line.attempt}",
        line.step,
        "" if line.seconds is None else f"{line.seconds:.3f} s",
        "" if line.error is None else " ".join(f"{line.error}: {line.message or ''}".split()),
        "" if line.retry_at is None else f"again at {shown_moment(line.retry_at, zone)}",
        "" if line.waits_for is None else f"for #{line.waits_for.get('interruptId')} {_event(line.waits_for)}".rstrip(),
    ]
    return "  ".join(part for part in parts if part)


def line_as_json(line: "HistoryLine") -> dict[str, Any]:
    """One line of history for programs."""
    return {
        "kind": line.kind.value,
        "at": iso(line.at),
        "attempt": line.attempt,
        "step": line.step or None,
        "seconds": line.seconds,
        "error": line.error,
        "message": line.message,
        "retry_at": iso(line.retry_at),
        "waits_for": None if line.waits_for is None else dict(line.waits_for),
    }


def _event(wait: Mapping[str, Any]) -> str:
    return str(wait.get("message") or wait.get("eventName") or wait.get("wakeAt") or "")


def _as_json(view: RunView) -> dict[str, Any]:
    known = row_as_json(view.row)
    wait = None if view.wait is None else dict(view.wait)
    lines = [line_as_json(line) for line in view.lines]
    return {**known, "waits_for": wait, "answered": view.answered, "left_out": view.left_out, "history": lines}


def _row_of(client: "MeshClient", workflow_id: str) -> RunRow:
    entry = client.runtime.store.entry(workflow_id)
    if entry is None:
        raise ConsoleError(f"the run of {workflow_id!r} has ended this moment: try again")
    return RunRow.of_entry(entry)


def _named(workflow_id: str, run_id: str | None) -> str:
    return repr(workflow_id) if run_id is None else f"run {run_id!r} of {workflow_id!r}"
