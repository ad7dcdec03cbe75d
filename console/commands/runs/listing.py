"""`jarvis runs list`: runs under way and ended, newest first."""

from typing import Annotated

import typer

from console.commands.runs.choosing import Name, Since, Status, Tag, Text, Until, chosen, parse_choice
from console.commands.runs.rows import row_as_json, table_of
from console.output import say, show, show_json

__all__ = ["list_runs"]

LIMIT = 20


def list_runs(
    status: Status = None,
    name: Name = None,
    tag: Tag = None,
    since: Since = None,
    until: Until = None,
    text: Text = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Show runs under way and ended, newest first. Sweeps of the watchdog that went well are shown with --name watchdog."""
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    choice = parse_choice(settings, status=status, name=name, tag=tag, since=since, until=until, text=text)
    # One more than wanted tells whether there are more.
    rows = visit(settings, lambda mesh: chosen(mesh.client, choice, limit + 1))
    if as_json:
        show_json([row_as_json(row) for row in rows[:limit]])
    else:
        for line in table_of(rows[:limit], settings.mesh.operator.tzinfo):
            show(line)
    if len(rows) > limit:
        say(f"there are more than {limit}: narrow the choice, or raise --limit")
    elif not rows:
        say("no run fits")
