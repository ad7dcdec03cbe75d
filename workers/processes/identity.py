"""Which process a pid means: a pid is used again after its process, the pair of pid and start time never is.

Imports only `os`: `launch` pays for this file before every child.
"""

import os

HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - pathlib is dear at this place
_STARTED = 19  # of the fields after the command's name: number 22 in proc(5), ticks since the boot


def started(pid: int) -> str | None:
    """Return when the process with this pid started, as text to compare, or None where there is none.

    On Linux the text names the boot too, for ticks begin anew with each. Elsewhere it is what `ps` prints.
    """
    return _started_by_proc(pid) if HAS_PROC else started_by_ps(pid)


def alive(pid: int, since: str) -> bool:
    """Tell whether the process that had this pid and start time still exists."""
    return started(pid) == since


def fields_of(stat: str) -> list[str]:
    """Return the fields of a `/proc/<pid>/stat` after the command's name, which may itself hold spaces and brackets."""
    return stat.rpartition(")")[2].split()


def started_of(fields: list[str], boot: str) -> str:
    """Return the start time that the fields of a `stat` tell, in the form of `started`."""
    return f"{boot}/{fields[_STARTED]}"


def boot_id() -> str:
    """Return the name that Linux gives to the time since the last boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - as above
        return file.read().strip()


def _started_by_proc(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - as above
            return started_of(fields_of(file.read()), boot_id())
    except (FileNotFoundError, ProcessLookupError):
        return None


def started_by_ps(pid: int) -> str | None:
    """Return the start time of a process as `ps` tells it, or None where there is none."""
    import subprocess  # dear, and not needed where there is a /proc

    asked = ["ps", "-o", "lstart=", "-p", str(pid)]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return " ".join(answer.stdout.split()) or None
