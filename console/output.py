"""What a command puts out: data on stdout, words on stderr, and the two never mixed."""

import contextlib
import json
import sys
from typing import Any, TextIO

__all__ = ["flush", "is_terminal", "put_words", "say", "show", "show_json"]


def show(text: str) -> None:
    """A line, or lines, of data."""
    sys.stdout.write(f"{text}\n")


def show_json(value: Any, *, indent: int | None = 2) -> None:
    """A JSON value as data: indented for a document, on one line (None) for one of a stream."""
    show(json.dumps(value, indent=indent, ensure_ascii=False))


def flush() -> None:
    """Let whoever reads have the data now: into a pipe it is collected otherwise."""
    sys.stdout.flush()


def say(line: str) -> None:
    """A line in our own words."""
    put_words(f"jarvis: {line}")


def put_words(text: str) -> None:
    """Words for the person in front. When nobody is there any more, nothing is lost and nothing fails."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at this stream."""
    with contextlib.suppress(ValueError):  # it is closed
        return stream.isatty()
    return False
