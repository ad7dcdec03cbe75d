"""Asking the person in front whether to go on. The question goes to stderr: stdout is for data."""

import sys

import typer

from console.output import is_terminal

__all__ = ["require_agreement", "somebody_is_there"]


def somebody_is_there() -> bool:
    """Whether there is a person who can be asked."""
    return is_terminal(sys.stdin)


def require_agreement(question: str) -> None:
    """Ask, and end the command with exit code 1 unless the answer is yes."""
    sys.stderr.write(f"{question} [y/N]: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise typer.Exit(1)
