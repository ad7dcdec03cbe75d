"""What stands in the boxes of a picture, and their ids. Names come from anywhere: only plain text is let through."""

import inspect
import re
from typing import Any

__all__ = ["Ids", "label_of", "plain"]

_PATH = re.compile(r".*[/\\]")
_ODD = re.compile(r"[^\w\[\], ]+")
_RESERVED = frozenset(
    """
    bt call class classdef click default direction end flowchart graph href interpolate linkstyle lr rl style subgraph tb td v
    """.split()  # noqa: SIM905 - a list of these words would take a line for each
)
"""Words that Mermaid takes for its own where an id should stand, in lower case."""


def label_of(thing: Any) -> str:
    """The short name of a class, a function, or the class of an object: no module, no enclosing function, no file path."""
    named = thing if isinstance(thing, type) or inspect.isroutine(thing) else type(thing)
    return plain(_ODD.sub(" ", _PATH.sub("", plain(named.__name__)))) or "unnamed"


def plain(text: str) -> str:
    """The text on one line. What cannot be printed, control characters and broken Unicode too, becomes a space."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


class Ids:
    """Gives each box of one picture an id of its own: ASCII letters, digits and underscores, made of its label."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, label: str) -> str:
        """An id that no other box has."""
        stem = re.sub(r"\W", "_", label, flags=re.ASCII)
        base = made = f"{stem}_" if stem.lower() in _RESERVED else stem
        number = 1
        while made in self._taken:
            number += 1
            made = f"{base}_{number}"
        self._taken.add(made)
        return made
