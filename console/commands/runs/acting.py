"""`jarvis runs resume|cancel|abandon|retry`: for the runs that are named, or for all that fit, once their number was seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.commands.runs.agreeing import require_agreement, somebody_is_there
from console.commands.runs.choosing import Choice, Name, Since, Status, Tag, Text, Until, chosen, parse_choice
from console.commands.runs.rows import RunRow
from console.errors import ConsoleError, MisuseError
from console.output import say, show, show_json

if TYPE_CHECKING:
    from console.joining import Joined
    from workers.client import MeshClient

__all__ = ["Deed", "Report", "abandon", "cancel", "resume", "retry"]

BULK_LIMIT = 1000
"""Runs that one command sees to at most."""
PREVIEWED = 10

Ids = Annotated[list[str] | None, typer.Argument(metavar="[WORKFLOW_ID]...", help="The runs; or say which with the options.")]
Run = Annotated[str | None, typer.Option("--run", help="Only if this is still the run of the one workflow id.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it to every run that fits the options.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON list of what became of each.")]


def resume(
    workflow_ids: Ids = None,
    run: Run = None,
    status: Status = None,
    name: Name = None,
    tag: Tag = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Have runs continued now: those that were begun, answered or interrupted and that no worker has taken up."""
    given = _Given(status, name, tag, since, until, text)
    _see_to(
        Deed("resume", "resumed", ("pending", "running", "suspended", "failed"), _resume),
        workflow_ids,
        run,
        given,
        yes,
        as_json,
    )


def retry(
    workflow_ids: Ids = None,
    run: Run = None,
    status: Status = None,
    name: Name = None,
    tag: Tag = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Have failed runs taken up again where they failed."""
    given = _Given(status, name, tag, since, until, text)
    _see_to(Deed("retry", "retried", ("failed",), _retry), workflow_ids, run, given, yes, as_json)


def cancel(
    workflow_ids: Ids = None,
    run: Run = None,
    status: Status = None,
    name: Name = None,
    tag: Tag = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End runs wherever they stand, also while a worker executes them."""
    given = _Given(status, name, tag, since, until, text)
    statuses = ("pending", "running", "suspended", "failed")
    _see_to(Deed("cancel", "cancelled", statuses, _cancel), workflow_ids, run, given, yes, as_json)


def abandon(
    workflow_ids: Ids = None,
    run: Run = None,
    status: Status = None,
    name: Name = None,
    tag: Tag = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Discard runs that nobody executes, with everything that they hold."""
    given = _Given(status, name, tag, since, until, text)
    _see_to(Deed("abandon", "abandoned", ("pending", "suspended", "failed"), _abandon), workflow_ids, run, given, yes, as_json)


@dataclass(frozen=True, slots=True)
class Deed:
    """What is done to a run; ``statuses`` are those of the runs that it can be done to. ``act`` says whether there was one."""

    verb: str
    done: str
    statuses: tuple[str, ...]
    act: Callable[["MeshClient", str, str | None], bool]


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one run. ``refusal`` is None when it was done."""

    workflow_id: str
    run_id: str | None
    refusal: str | None


@dataclass(frozen=True, slots=True)
class _Given:
    status: str | None
    name: str | None
    tag: str | None
    since: str | None
    until: str | None
    text: str | None

    def choice(self, settings: Any) -> Choice:
        typed = {field: getattr(self, field) for field in self.__slots__}
        return parse_choice(settings, **typed)


def _see_to(deed: Deed, ids: Sequence[str] | None, run: str | None, given: _Given, yes: bool, as_json: bool) -> None:
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    choice = given.choice(settings)
    _check(deed, ids or (), run, choice)

    def act(mesh: "Joined") -> list[Report]:
        named = [(workflow_id, run) for workflow_id in ids or ()]
        return [_do(deed, mesh.client, *one) for one in named or _fitting(deed, mesh.client, choice, yes=yes)]

    _tell(deed, visit(settings, act), as_json=as_json)


def _check(deed: Deed, ids: Sequence[str], run: str | None, choice: Choice) -> None:
    if bool(ids) is not choice.is_empty:
        raise MisuseError(f"say which runs to {deed.verb}: either their workflow ids, or options such as --status and --name")
    if run is not None and len(ids) != 1:
        raise MisuseError("--run goes with one workflow id")
    if choice.status is not None and choice.status not in deed.statuses:
        raise MisuseError(f"a run that is {choice.status} cannot be {deed.done}: {', '.join(deed.statuses)} ones can")


def _fitting(deed: Deed, client: "MeshClient", choice: Choice, *, yes: bool) -> list[tuple[str, str | None]]:
    """The runs that fit, once a person has agreed to their number. Raises `MisuseError` where nobody has."""
    rows = [row for row in chosen(client, choice, BULK_LIMIT) if row.status in deed.statuses]
    if rows and not yes:
        _ask(deed, rows)
    return [(row.workflow_id, row.run_id) for row in rows]


def _ask(deed: Deed, rows: Sequence[RunRow]) -> None:
    for row in rows[:PREVIEWED]:
        say(f"{row.workflow_id} ({row.name}, {row.status})")
    more = f", {len(rows) - PREVIEWED} of them not shown" if len(rows) > PREVIEWED else ""
    said = f"{_count(rows)} would be {deed.done}{more}"
    if not somebody_is_there():
        raise MisuseError(f"{said}: nothing was done; add --yes to do it")
    say(said)
    require_agreement("Go on?")


def _do(deed: Deed, client: "MeshClient", workflow_id: str, run_id: str | None) -> Report:
    from workflow import WorkflowRefusedError

    try:
        found = deed.act(client, workflow_id, run_id)
    except WorkflowRefusedError as refused:
        return Report(workflow_id, run_id, str(refused))
    refusal = None if found else f"workflow {workflow_id!r}: there is no such run that could be {deed.done}"
    return Report(workflow_id, run_id, refusal)


def _tell(deed: Deed, reports: Sequence[Report], *, as_json: bool) -> None:
    if as_json:
        show_json(
            [
                {"workflow_id": one.workflow_id, "run_id": one.run_id, deed.done: one.refusal is None, "refusal": one.refusal}
                for one in reports
            ]
        )
    else:
        for one in reports:
            if one.refusal is None:
                show(f"{deed.done}  {one.workflow_id}")
    refused = [one.refusal for one in reports if one.refusal is not None]
    for refusal in refused if len(reports) > 1 else ():
        say(refusal)
    if refused:
        raise ConsoleError(refused[0] if len(reports) == 1 else f"{len(refused)} of {_count(reports)} could not be {deed.done}")
    if not reports:
        say("no run fits")


def _count(rows: Sequence[object]) -> str:
    return "1 run" if len(rows) == 1 else f"{len(rows)} runs"


def _resume(client: "MeshClient", workflow_id: str, run_id: str | None) -> bool:
    return client.retry(workflow_id, run_id=run_id)


def _retry(client: "MeshClient", workflow_id: str, run_id: str | None) -> bool:
    entry = client.runtime.store.entry(workflow_id)
    return entry is not None and entry.status == "failed" and client.retry(workflow_id, run_id=run_id)


def _cancel(client: "MeshClient", workflow_id: str, run_id: str | None) -> bool:
    return client.cancel(workflow_id, run_id=run_id)


def _abandon(client: "MeshClient", workflow_id: str, run_id: str | None) -> bool:
    return client.abandon(workflow_id, run_id=run_id)
