"""`jarvis doctor`: what is right and wrong with a mesh, and what each thing means for its runs. It only reads."""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.output import show, show_json
from console.wording import next_briefing_line

if TYPE_CHECKING:
    from console.health.findings import Finding
    from workers.settings import Settings

__all__ = ["doctor", "lines_of"]


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False) -> int:
    """Look at server, broker, workers and watchdog. Exit code 1 when something is wrong."""
    from console.health.findings import State
    from workers.settings import Settings

    findings = list(_findings(Settings.load()))
    healthy = all(finding.state is not State.WRONG for finding in findings)
    if as_json:
        show_json({"healthy": healthy, "findings": [_as_json(finding) for finding in findings]})
    else:
        for line in lines_of(findings):
            show(line)
    return 0 if healthy else 1


def lines_of(findings: Iterable["Finding"]) -> list[str]:
    """The findings as aligned lines, with what each means behind it."""
    found = list(findings)
    width = max(len(finding.check) for finding in found)
    texts = [f"{finding.fact}; {finding.meaning}" if finding.meaning else finding.fact for finding in found]
    return [f"{finding.state.value:<5}  {finding.check:<{width}}  {text}" for finding, text in zip(found, texts, strict=True)]


def _findings(settings: "Settings") -> Iterator["Finding"]:
    from console.health.findings import Finding, State
    from console.joining import at_address, running_server

    yield Finding("settings", State.OK, str(settings.config))
    running = running_server(settings.home.absolute()) if settings.redis_url is None else None
    if settings.redis_url is None and running is None:
        from console.health.examining import examine_without_server

        yield examine_without_server()
    else:
        from console.health.examining import examine

        yield from examine(settings if running is None else at_address(settings, running[1]))
    upcoming = next_briefing_line(settings.schedule.briefing, settings.mesh.operator.tzinfo, dt.datetime.now(dt.UTC))
    yield Finding("schedule", State.OK, upcoming)


def _as_json(finding: "Finding") -> dict[str, Any]:
    return {"check": finding.check, "state": finding.state.value, "fact": finding.fact, "meaning": finding.meaning}
