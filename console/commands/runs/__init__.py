"""`jarvis runs`: what runs and ran, what it waits for, and the hand that a person lends.

Read in this order: `choosing` (which runs are meant), `rows` (a run on a line), then a file for each kind of command:
`listing`, `showing`, `watching`, `answering`, `acting` (the last two ask the person in front: `agreeing`).
"""

import typer

from console.commands.runs.acting import abandon, cancel, resume, retry
from console.commands.runs.answering import answer, approve
from console.commands.runs.listing import list_runs
from console.commands.runs.showing import show_run
from console.commands.runs.watching import watch

__all__ = ["runs"]

runs = typer.Typer(help="What runs and ran, and what it waits for.", no_args_is_help=True)
runs.command("list")(list_runs)
runs.command("show")(show_run)
runs.command("watch")(watch)
runs.command("resume")(resume)
runs.command("answer")(answer)
runs.command("approve")(approve)
runs.command("cancel")(cancel)
runs.command("abandon")(abandon)
runs.command("retry")(retry)
