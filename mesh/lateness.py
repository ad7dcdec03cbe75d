"""Says of a briefing in its own text that it is late, whoever wrote it: pure."""

import datetime as dt

__all__ = ["LATE_AFTER", "labelled"]

LATE_AFTER = dt.timedelta(minutes=5)
"""After its time a briefing is late from here on: agents may take minutes to write one."""


def labelled(text: str, due: dt.datetime | None, written: dt.datetime) -> str:
    """The text with a line below its title when it is late. ``due`` is aware, in the zone in which times are told."""
    if due is None or written - due <= LATE_AFTER:
        return text
    title, newline, rest = text.partition("\n")
    line = f"*Late edition: due at {due:%H:%M}, written at {_when(written.astimezone(due.tzinfo), due)}.*"
    if not title.startswith("# "):
        return f"{line}\n\n{text}"
    return f"{title}\n\n{line}\n{newline}{rest.lstrip(chr(10))}"


def _when(written: dt.datetime, due: dt.datetime) -> str:
    return f"{written:%H:%M}" if written.date() == due.date() else f"{written:%H:%M} on {written:%Y-%m-%d}"
