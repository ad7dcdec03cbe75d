"""Which process a pid means: a pid is used again after its process, the pair of pid and start time never is.

Imports only `os`: `launch` pays for this file before every child.
"""

import os

HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - pathlib is dear at this place
_STARTED = 19  # of the fields after the command's name: number 22 in proc(5), ticks since the boot


def started(pid: int) -> str | None:
    """Return when the process with this pid started, as text to compare, or None where none runs.

    One that has ended counts as none, even if nobody has waited for it yet. On Linux the text names the boot too, for ticks
    begin anew with each. Elsewhere it is what `ps` prints.
    """
    return _started_by_proc(pid) if HAS_PROC else started_by_ps(pid)


def alive(pid: int, since: str) -> bool:
    """Tell whether the process that had this pid and start time still runs."""
    return started(pid) == since


def fields_of(stat: str) -> list[str]:
    """Return the fields of a `/proc/<pid>/stat` after the command's name, which may itself hold spaces and brackets."""
    return stat.rpartition(")")[2].split()


def has_ended(state: str) -> bool:
    """Tell whether a state, as `/proc` or `ps` writes it, is that of a process which is only still to be waited for."""
    return state[0] in "ZXx"


def started_of(fields: list[str], boot: str) -> str:
    """Return the start time that the fields of a `stat` tell, in the form of `started`."""
    return f"{boot}/{fields[_STARTED]}"


def file_id(file: int | os.PathLike[str]) -> str:
    """Name a file or folder for as long as it exists, wherever it is moved to on its disk; a copy has another name."""
    found = os.stat(file)  # noqa: PTH116 - also for a file that is open
    return f"{found.st_dev}:{found.st_ino}"


def boot_id() -> str:
    """Return the name that Linux gives to the time since the last boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - as above
        return file.read().strip()


def _started_by_proc(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - as above
            fields = fields_of(file.read())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if has_ended(fields[0]) else started_of(fields, boot_id())


def started_by_ps(pid: int) -> str | None:
    """Return the same as `ps` tells it."""
    import subprocess  # dear, and not needed where there is a /proc

    asked = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    state, *since = answer.stdout.split() or "Z"
    return None if has_ended(state) else " ".join(since)
