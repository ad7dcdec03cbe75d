"""The `jarvis` command: from what was typed to an exit code. Nobody sees a traceback for a mistake of their own.

Exit codes: 0 done, 1 failed, 2 misuse, 128 and the signal's number when a signal ended it (130 for Ctrl-C).
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main", "run"]

INTERRUPTED = 128


def main() -> NoReturn:
    """Do what the command line says and end the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character shows another one
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say. Returns the exit code; with ``JARVIS_DEBUG=1`` errors are raised instead."""
    try:
        return _obey(arguments)
    except KeyboardInterrupt as stop:
        return INTERRUPTED + getattr(stop, "number", signal.SIGINT)
    except BrokenPipeError:
        return _unheard()
    except Exception as error:
        if os.environ.get("JARVIS_DEBUG") == "1":
            raise
        return _explain(error)


def _obey(arguments: Sequence[str]) -> int:
    # Imported within reach of the handlers above: Ctrl-C may come at any moment, and a room may be foreign.
    from console.rooms import check_rooms

    check_rooms()
    import typer
    from typer.main import get_command

    from console.app import app
    from console.output import flush

    command = get_command(app)
    try:
        with command.make_context("jarvis", list(arguments)) as context:
            code: object = command.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    flush()
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> int:
    from console.output import say
    from console.trouble import explained

    line, code = explained(error)
    say(line)
    return code


def _unheard() -> int:
    """Whoever read our output has left, as `head` does. What is still in the buffer goes nowhere, without a complaint."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    main()
