"""The processes of the machine at one moment, as far as they can be read: from `/proc`, or from `ps` elsewhere."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from workers.processes.identity import HAS_PROC, boot_id, fields_of, has_ended, started_of

MARK = "JARVIS_PROCESS_MARK"
"""The environment variable that carries a child's mark to all that it starts."""

_MARKED = re.compile(rf"(?:^|[\0 ]){MARK}=([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `mark` is empty where it has none or its environment cannot be read; `session` is 0 where unknown."""

    pid: int
    parent: int
    group: int
    session: int
    started: str
    ended: bool
    mark: str


def read_table() -> dict[int, Process]:
    """Return the processes of this machine by pid, also those that ended and were not yet waited for."""
    return read_proc() if HAS_PROC else read_ps()


def read_proc() -> dict[int, Process]:
    """Return the processes as Linux tells them. One that ends while it is read is left out."""
    boot = boot_id()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - the names are enough
    found = (_read_one(pid, boot) for pid in pids)
    return {process.pid: process for process in found if process is not None}


def _read_one(pid: int, boot: str) -> Process | None:
    try:
        fields = fields_of(Path(f"/proc/{pid}/stat").read_text(errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, parent, group, session = fields[0], *map(int, fields[1:4])
    return Process(pid, parent, group, session, started_of(fields, boot), has_ended(state), _mark_of(pid))


def _mark_of(pid: int) -> str:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # another user's process, or one that has just ended
        return ""
    return _mark_in(environment.decode(errors="replace"))


def read_ps() -> dict[int, Process]:
    """Return the processes as `ps` tells them, where there is no `/proc`: start times to the second, no sessions."""
    marks = {int(line.split()[0]): _mark_in(line) for line in _ps(_environment_flags(), "pid=,command=")}
    rows = [line.split() for line in _ps("-ax", "pid=,ppid=,pgid=,stat=,lstart=")]
    return {
        int(pid): Process(
            pid=int(pid),
            parent=int(parent),
            group=int(group),
            session=0,
            started=" ".join(since),
            ended=has_ended(state),
            mark=marks.get(int(pid), ""),
        )
        for pid, parent, group, state, *since in rows
    }


def _environment_flags() -> str:
    # Without the dash, procps takes `e` as "with the environment"; Darwin's ps has -E for it.
    return "-axwwE" if sys.platform == "darwin" else "axeww"


def _ps(flags: str, columns: str) -> list[str]:
    answer = subprocess.run(["ps", flags, "-o", columns], capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
    return [line for line in answer.stdout.decode(errors="replace").splitlines() if line.strip()]


def _mark_in(environment: str) -> str:
    found = _MARKED.search(environment)
    return found.group(1) if found else ""
