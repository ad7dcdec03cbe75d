"""Runs first in every child, as a script: records the child, sees that its owner lives, and becomes the real program.

Called as `launch.py <owner's pid> <path of the record> <first line of the record> <program> [<argument> …]`.

The order is what makes it safe. Whoever finds the owner dead reads the ledger after that death. A child that runs its real
program has seen its owner alive after its record was written, so it is in what they read; any other child ends here.
"""

import os
import signal
import sys

CANNOT_RUN = 127
"""The exit code of a program that cannot be run, as shells have it."""

ORPHANED = 3
"""The exit code of a child whose owner died before the real program began."""


def main(owner: str, path: str, asked: str, *program: str) -> None:
    """Record this process and turn into the program. Return never, except in a test of its own."""
    from workers.processes.identity import started

    write_record(path, f"{asked}\n{os.getpid()} {started(os.getpid())}\n")
    if os.getppid() != int(owner):
        os.unlink(path)  # noqa: PTH108 - as below
        sys.exit(ORPHANED)
    # Python ignores these two, and what is ignored stays so in the new program.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)  # noqa: S606 - no shell is the point
    except OSError as error:
        print(f"{program[0]} cannot be run: {error.strerror}", file=sys.stderr)  # noqa: T201 - goes to the child's log
        sys.exit(CANNOT_RUN)


def write_record(path: str, text: str) -> None:
    """Write a file so that a reader finds all of it or none, also after a power cut."""
    part = f"{path}.part"
    with open(part, "w") as file:  # noqa: PTH123 - pathlib costs more than all the rest here
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)  # noqa: PTH105 - as above


if __name__ == "__main__":
    # Started isolated and without site-packages: only the folder that holds this package is added, after the library.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    main(*sys.argv[1:])
