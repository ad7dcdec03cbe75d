"""How far a briefing is, for the person who waits: a live list on a terminal, plain lines anywhere else."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from console.output import is_terminal, say

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["STEPS", "PlainProgress", "Progress", "Track", "progress"]

STEPS = {"research": "Research", "operations": "Operations", "compose": "Composition", "publish": "Publication"}
"""The steps of a briefing, by the names under which the store knows them."""


class Progress(Protocol):
    """Somebody who is told how far the briefing is."""

    def at(self, step: str) -> None:
        """A worker is at this step. The empty name: it has just begun."""
        ...

    def done(self) -> None:
        """All steps are done."""
        ...


class Track:
    """Where the run is. It never goes back, though a worker that takes a run over begins by saying nothing."""

    def __init__(self) -> None:
        self.reached = -1
        """How many steps are done; -1 while nobody has begun."""

    def advance(self, step: str) -> list[str]:
        """Note the present step. Returns the titles of the steps that are now done and were not before."""
        names = list(STEPS)
        place = names.index(step) if step in names else 0
        return self._move(place)

    def finish(self) -> list[str]:
        """Note that all is done. Returns as `advance` does."""
        return self._move(len(STEPS))

    def _move(self, place: int) -> list[str]:
        before, self.reached = max(self.reached, 0), max(self.reached, place)
        return list(STEPS.values())[before : self.reached]


class PlainProgress:
    """A line for each step that is done."""

    def __init__(self) -> None:
        self._track = Track()

    def at(self, step: str) -> None:
        """See `Progress.at`."""
        self._tell(self._track.advance(step))

    def done(self) -> None:
        """See `Progress.done`."""
        self._tell(self._track.finish())

    def _tell(self, titles: list[str]) -> None:
        for title in titles:
            say(f"{title}: done")


class _LiveProgress:
    """A list with a spinner at the present step, redrawn in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._track = Track()
        self._spinner = Spinner("dots")
        # While it is shown, other words to stderr appear above it.
        self.live = Live(console=Console(stderr=True), get_renderable=self._drawn, refresh_per_second=10)

    def at(self, step: str) -> None:
        self._track.advance(step)

    def done(self) -> None:
        self._track.finish()

    def _drawn(self) -> "RenderableType":
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        for place, title in enumerate(STEPS.values()):
            if place < self._track.reached:
                grid.add_row(Text("✓", style="green"), title)
            elif place == max(self._track.reached, 0):
                waiting = ": waiting for a worker" if self._track.reached < 0 else ""
                grid.add_row(self._spinner, f"{title}{waiting}")
            else:
                grid.add_row(" ", Text(title, style="dim"))
        return grid


@contextmanager
def progress() -> Generator[Progress]:
    """The progress that fits where the words go."""
    if not is_terminal(sys.stderr):
        yield PlainProgress()
        return
    shown = _LiveProgress()
    with shown.live:
        yield shown
