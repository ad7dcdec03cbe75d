"""The commands of `jarvis`, put together. Each is a file in `console.commands` and imports what it needs when it runs."""

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from console.commands.agents import agents
from console.commands.brief import brief
from console.commands.dead_letters import dead
from console.commands.doctor import doctor
from console.commands.graph import graph
from console.commands.init import init
from console.commands.make import make_workflow
from console.commands.runs import runs
from console.commands.schedules import schedules
from console.commands.signals import groups, publish, tail
from console.commands.up import up
from console.commands.watchdog import sweep
from console.output import show

__all__ = ["app"]

app = typer.Typer(name="jarvis", add_completion=False, rich_markup_mode=None)
signals = typer.Typer(help="The facts on the bus.")
watchdog = typer.Typer(help="Who has stopped.")
make = typer.Typer(help="Files to start from.")


@app.callback(invoke_without_command=True)
def jarvis(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Small durable agents that prepare a morning briefing, watch operations and say when something stops."""
    if version:
        show(f"jarvis {installed_version('jarvis-mesh')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        show(context.get_help())


app.command()(brief)
app.command()(up)
app.command()(init)
app.command()(agents)
app.command()(doctor)
app.command()(graph)
app.command()(schedules)
signals.command()(tail)
signals.command()(publish)
signals.command()(groups)
signals.add_typer(dead, name="dead")
watchdog.command()(sweep)
app.add_typer(runs, name="runs")
app.add_typer(signals, name="signals")
make.command("workflow")(make_workflow)
app.add_typer(watchdog, name="watchdog")
app.add_typer(make, name="make")
