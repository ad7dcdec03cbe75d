"""`jarvis brief`: today's briefing, written through the whole mesh, or the one that is there already."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console.output import is_terminal, say, show, show_json
from console.wording import parse_date, shown_path

if TYPE_CHECKING:
    from console.asking import Briefing

__all__ = ["brief"]


def brief(
    date: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Another day than the operator's today.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Write a new edition, though there is one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Write today's briefing, or show the one that was written."""
    day = parse_date(date) if date is not None else None
    from console.joining import visit
    from workers.settings import Settings

    settings = Settings.load()
    from console.asking import Wish
    from console.pages import page_path, write_page

    briefing = visit(settings, Wish(day, again=again).grant)
    path = page_path(settings.home.absolute(), briefing.date, briefing.edition)
    write_page(path, briefing.text)
    say(_where(briefing, shown_path(path, Path.cwd())))
    _put(briefing, path, as_json=as_json)


def _where(briefing: "Briefing", path: str) -> str:
    if briefing.kept:
        return f"the briefing of {briefing.date} was there already: {path} (a new edition: `jarvis brief --again`)"
    return f"wrote {path}"


def _put(briefing: "Briefing", path: Path, *, as_json: bool) -> None:
    if as_json:
        known = {"date": briefing.date.isoformat(), "edition": briefing.edition, "path": os.fspath(path)}
        show_json({**known, "created": briefing.created, "text": briefing.text})
    elif is_terminal(sys.stdout):
        _render(briefing.text)
    else:
        show(briefing.text.rstrip("\n"))


def _render(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
