"""`jarvis watchdog sweep`: one sweep in this process, for cron or for a person who wants to know now."""

import datetime as dt
from typing import TYPE_CHECKING, Any

from console.output import say, show

if TYPE_CHECKING:
    from console.joining import Joined

__all__ = ["found_lines", "sweep"]


def sweep() -> None:
    """Look once at every agent that should beat, and publish an alert for each that has stopped.

    Sweeping the same facts again, or at the same time as somebody else, adds no alert.
    Where the server takes no writes, or has long been away, people are told that.
    """
    from console.joining import visit
    from workers.settings import Settings

    found = visit(Settings.load(), _sweep)
    if found is None:
        say("somebody else made this very sweep")
        return
    for line in found_lines(found):
        show(line)


def found_lines(found: dict[str, Any]) -> list[str]:
    """What a sweep found, one agent a line."""
    return [f"stopped  {agent}" for agent in found["stale"]] + [f"healthy  {agent}" for agent in found["healthy"]]


def _sweep(mesh: "Joined") -> dict[str, Any] | None:
    from workers.schedules.watchdog import sweep_watchdog
    from workers.signals.outcry import Outcry

    now = dt.datetime.now(dt.UTC)
    # Not the id of beat's slot: whoever asks wants to know now, also when the slot has had its sweep.
    try:
        return sweep_watchdog(mesh.client.runtime, f"watchdog-{now:%Y%m%dT%H%M%S}-{now.microsecond:06}", now)
    finally:
        Outcry(mesh.client.runtime).look_patiently()
