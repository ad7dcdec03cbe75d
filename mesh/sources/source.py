"""The contract of a source."""

from __future__ import annotations

from typing import Protocol

from mesh.sources.item import Reading
from mesh.sources.window import Window


class Source(Protocol):
    """Something a briefing reads. Sources are read at the same time, each in a thread of its own."""

    @property
    def name(self) -> str:
        """What the operator calls it; every line that comes from it carries this name."""
        ...

    def read(self, window: Window) -> Reading:
        """Return what belongs to `window`, in an order that depends on the content alone.

        Never raises for bad content or an unreachable server: that is a `Gap` with its reason. A malformed entry is
        skipped and counted in a remark. Returns within the time-outs of its settings.
        """
        ...


CONTENT_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What parsers raise when foreign content is not what they expect. None of them means trouble with our own system."""
