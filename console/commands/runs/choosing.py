"""Which runs are meant: the options of listings and of commands for many runs, and the search behind them."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from console.commands.runs.rows import RunRow
from console.errors import MisuseError
from console.wording import parse_since

if TYPE_CHECKING:
    from persistence import IndexEntry
    from workers.client import MeshClient
    from workers.history import PastPage, PastRun
    from workers.settings import Settings

__all__ = ["Choice", "Name", "Since", "Status", "Tag", "Text", "Until", "chosen", "parse_choice"]

Status = Annotated[
    str | None, typer.Option(help="pending, running, suspended, failed, completed, cancelled or abandoned.", metavar="STATUS")
]
Name = Annotated[str | None, typer.Option(help="Of this workflow, such as daily-briefing.")]
Tag = Annotated[str | None, typer.Option(help="Started with this tag.")]
Since = Annotated[str | None, typer.Option(help="Started since then: an age such as 30m or 2d, or 2026-11-30T07:00.")]
Until = Annotated[str | None, typer.Option(help="Started before then.")]
Text = Annotated[str | None, typer.Option(help="With these words in an id, the name, the tag, the step or the error.")]

PAGE = 200
WATCHDOG = "watchdog"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was typed."""

    status: str | None = None
    name: str | None = None
    tag: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    text: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing narrows the choice."""
        return self == Choice()

    def leaves_out(self, run: "PastRun") -> bool:
        """Sweeps of the watchdog that went well, unless somebody asks for them: there is one each minute."""
        return self.name is None and run.name == WATCHDOG and run.status == "completed"


def parse_choice(
    settings: "Settings",
    *,
    status: str | None,
    name: str | None,
    tag: str | None,
    since: str | None,
    until: str | None,
    text: str | None,
) -> Choice:
    """The choice that was typed. Raises `MisuseError`."""
    from workers.history.past import STATUSES

    if status is not None and status not in STATUSES:
        raise MisuseError(f"there is no status {status!r}: use one of {', '.join(STATUSES)}")
    now, zone = dt.datetime.now(dt.UTC), settings.mesh.operator.tzinfo
    begin, end = (None if typed is None else parse_since(typed, now, zone) for typed in (since, until))
    return Choice(status, name, tag, begin, end, text)


def chosen(client: "MeshClient", choice: Choice, limit: int) -> list[RunRow]:
    """The runs that are meant, newest first, so many at most. Those that the store holds without a history come first."""
    rows: list[RunRow] = []
    for row in _all(client, choice):
        rows.append(row)
        if len(rows) >= limit:
            break
    return rows


def _all(client: "MeshClient", choice: Choice) -> Iterator[RunRow]:
    page = _page(client, choice, None)
    # Only now: asking for a page brings what is remembered up to date.
    yield from _unremembered(client, choice)
    yield from map(RunRow.of_past, page)
    while page.after is not None:
        page = _page(client, choice, page.after)
        yield from map(RunRow.of_past, page)


def _page(client: "MeshClient", choice: Choice, after: "IndexEntry | None") -> "PastPage":
    return client.past_runs(
        status=choice.status,
        name=choice.name,
        tag=choice.tag,
        since=choice.since,
        until=choice.until,
        text=choice.text,
        without=choice.leaves_out,
        limit=PAGE,
        after=after,
    )


def _unremembered(client: "MeshClient", choice: Choice) -> Iterator[RunRow]:
    """Runs of programs that keep no history, as the store's index shows them."""
    from workflow import WorkflowStatus

    if choice.since is not None or choice.until is not None or choice.status not in (None, *(s.value for s in WorkflowStatus)):
        return  # nobody knows when they started, and none of them is kept once it is abandoned
    status = None if choice.status is None else WorkflowStatus(choice.status)
    for entry in client.runs(status=status, name=choice.name, limit=PAGE):
        row = RunRow.of_entry(entry)
        fits = (choice.tag is None or row.tag == choice.tag) and (choice.text is None or row.has(choice.text))
        if fits and not client.remembers(row.workflow_id, row.run_id):
            yield row
