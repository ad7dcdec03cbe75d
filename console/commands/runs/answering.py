"""`jarvis runs answer` and `jarvis runs approve`: answers to the question that was shown, and to no other."""

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from console.commands.runs.agreeing import require_agreement, somebody_is_there
from console.commands.runs.showing import WorkflowId, answer_command, wait_of
from console.errors import ConsoleError, MisuseError
from console.output import say, show_json

if TYPE_CHECKING:
    from console.joining import Joined
    from workers.client import MeshClient

__all__ = ["answer", "approve", "decisions_of", "parse_payload"]

Run = Annotated[str | None, typer.Option("--run", help="The run whose question was shown.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object.")]
Interrupt = Annotated[int | None, typer.Option("--interrupt", help="The number of the question that was shown.")]


def answer(
    workflow_id: WorkflowId,
    payload: Annotated[str, typer.Argument(metavar="JSON", help="The answer as JSON; - reads it from stdin.")],
    run: Run = None,
    interrupt: Interrupt = None,
    as_json: AsJson = False,
) -> None:
    """Answer what a run waits for. `jarvis runs show` shows the question, and this command with its numbers."""
    value = parse_payload(sys.stdin.read() if payload == "-" else payload)

    def give(client: "MeshClient", shown: dict[str, Any]) -> bool:
        return client.answer(workflow_id, value, **_fence(shown))

    _give(workflow_id, run, interrupt, give, as_json=as_json)


def approve(
    workflow_id: WorkflowId,
    run: Run = None,
    interrupt: Interrupt = None,
    reject: Annotated[list[str] | None, typer.Option(help="Reject this action. May be repeated.", metavar="ACTION")] = None,
    reject_all: Annotated[bool, typer.Option("--reject-all", help="Reject every action.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why, for what is rejected.")] = None,
    as_json: AsJson = False,
) -> None:
    """Approve what a run asks for: every action that is not rejected."""

    def give(client: "MeshClient", shown: dict[str, Any]) -> bool:
        decisions = decisions_of(shown, reject or (), reject_all=reject_all, reason=reason)
        return client.approve(workflow_id, decisions, **_fence(shown))

    _give(workflow_id, run, interrupt, give, as_json=as_json)


def parse_payload(text: str) -> Any:
    """The answer that was typed. Raises `MisuseError`."""
    try:
        return json.loads(text)
    except ValueError as wrong:
        raise MisuseError(f"the answer is not JSON ({wrong}): a text needs its quotes, as in '\"yes\"'") from wrong


def decisions_of(shown: dict[str, Any], rejected: Iterable[str], *, reject_all: bool, reason: str | None) -> dict[str, Any]:
    """A decision for each action of the request; ``approved`` for one without actions. Raises `MisuseError`."""
    known = [str(action["id"]) for action in cast(list[dict[str, Any]], shown.get("actions") or [])]
    refused = set(rejected)
    if unknown := sorted(refused - set(known)):
        raise MisuseError(f"there is no action {unknown[0]!r}: it asks for {', '.join(known) or 'no single action'}")
    if not known:
        return {"approved": not reject_all, **({"reason": reason} if reason is not None else {})}
    no = "reject" if reason is None else ["reject", reason]
    return {action: no if reject_all or action in refused else "approve" for action in known}


def _give(
    workflow_id: str,
    run: str | None,
    interrupt: int | None,
    give: Callable[["MeshClient", dict[str, Any]], bool],
    *,
    as_json: bool,
) -> None:
    from console.joining import visit
    from workers.settings import Settings

    if (run is None) != (interrupt is None):
        raise MisuseError("a question is named by --run and --interrupt together")

    def act(mesh: "Joined") -> tuple[dict[str, Any], bool]:
        shown = _shown(mesh.client, workflow_id, run, interrupt)
        return shown, give(mesh.client, shown)

    shown, accepted = visit(Settings.load(), act)
    say("the answer is recorded" if accepted else "this very answer had been given before")
    if as_json:
        show_json({"workflow_id": workflow_id, **_fence(shown), "accepted": accepted})


def _shown(client: "MeshClient", workflow_id: str, run: str | None, interrupt: int | None) -> dict[str, Any]:
    """The question that is answered: the one that was named, or the one that is shown now to the person in front.

    Raises `ConsoleError` when the run waits for nothing, and `MisuseError` when nobody has seen the question.
    """
    snapshot = client.inspect(workflow_id)
    wait = None if snapshot is None else wait_of(snapshot)
    if snapshot is None or wait is None:
        raise ConsoleError(f"{workflow_id!r} waits for no answer: `jarvis runs show` shows where it stands")
    if run is not None:
        return {**wait, "run": run, "interrupt": interrupt}
    shown = json.dumps(wait, ensure_ascii=False, default=str)
    if not somebody_is_there():
        raise MisuseError(
            f"say which question you answer: {answer_command(workflow_id, snapshot.run_id, wait)} (it asks {shown})"
        )
    say(f"it asks {shown}")
    require_agreement("Answer this question?")
    return {**wait, "run": snapshot.run_id, "interrupt": wait["interruptId"]}


def _fence(shown: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": shown["run"], "interrupt_id": shown["interrupt"]}
