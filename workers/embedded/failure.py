"""Why the server did not start, from its last log lines: pure, in one line, with what to do."""

import re
from collections.abc import Sequence
from pathlib import Path

from workers.errors import ServerDataError, ServerNotStartedError

_PREFIX = re.compile(r"^\d+:[A-Z] .*? (?:[#*.-]|<\w+>) ")
_UNREADABLE = re.compile(
    r"(?i)bad file format reading|can't handle rdb format|unknown command .* reading the append|error reading the rdb|"
    r"fatal error loading|unexpected end of file reading|terminating server after rdb"
)


def start_failure(
    lines: Sequence[str], *, log: Path, data: Path, version: str, writer_version: str | None
) -> ServerNotStartedError:
    """Return the error for a server of this version that ended after these log lines.

    `writer_version` is the server that last wrote the data, or None for a new folder.
    """
    reason = last_reason(lines)
    if not _UNREADABLE.search(reason):
        return ServerNotStartedError(f"The private server ({version}) did not start: {reason} (all of it in {log})")
    if writer_version not in (None, version):
        return ServerDataError(
            f"{version} cannot read the data in {data}, which {writer_version} wrote: "
            f"start with {writer_version} or later, or move {data} away to begin anew."
        )
    return ServerDataError(f"The data in {data} is damaged ({reason}): repair a copy of it, or move {data} away to begin anew.")


def last_reason(lines: Sequence[str]) -> str:
    """Return the line that says why, without its time: the last warning if there is one, else the last line."""
    warnings = [line for line in lines if " # " in line and "WARNING" not in line]
    told = (warnings or list(lines) or ["it said nothing"])[-1]
    return _PREFIX.sub("", told)
