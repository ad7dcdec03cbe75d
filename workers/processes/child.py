"""One supervised process: what was asked, the process that runs it now, and how it has fared."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from workers.processes import launch
from workers.processes.ledger import Ledger
from workers.processes.logs import open_log
from workers.processes.table import MARK

GRACE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to start.

    `role` is what it is for, unique among the processes of one owner. `env` is added to the owner's environment. `log` takes
    its output; without one it goes where the owner's goes. A `foundation` is what others stand on, so it ends after them.
    `grace` is how long (s) it may take to end when asked.
    """

    role: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    log: Path | None = None
    foundation: bool = False
    grace: float = GRACE_SECONDS


@dataclass(slots=True)
class Child:
    """A process as its owner sees it. `restart_at` is set while it waits for its next start."""

    spec: ProcessSpec
    mark: str
    process: subprocess.Popen[bytes]
    since: float
    failures: int = 0
    restart_at: float | None = None


def spawn(spec: ProcessSpec, mark: str, ledger: Ledger) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that the terminal's Ctrl-C does not reach it, by way of `launch`."""
    path = str(ledger.path(mark))
    first_line = ledger.first_line(mark, spec.role, foundation=spec.foundation, grace=spec.grace)
    script = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), path, first_line]
    with open_log(spec.log) if spec.log else nullcontext() as output:
        return subprocess.Popen(
            [*script, *spec.argv],
            env={**os.environ, **spec.env, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def ended_how(code: int) -> str:
    """Say in words how a process ended, from its return code as `subprocess` gives it."""
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
