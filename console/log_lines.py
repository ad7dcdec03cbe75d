"""Log lines of the mesh's processes for one screen: who says it, how it matters, what happened. Pure."""

import datetime as dt
import json
from typing import Any, cast
from zoneinfo import ZoneInfo

__all__ = ["json_line", "readable_line"]

ROLE_WIDTH = 9
"""Characters of the longest role: consumers."""
_KNOWN = ("timestamp", "level", "event", "exception")


def readable_line(role: str, line: str, zone: ZoneInfo) -> str:
    """A line for people: the time by the operator's clock, the role, the level where it matters, the words, the rest.

    What is no JSON object of ours is shown as it is, behind its role.
    """
    record = _record(line)
    if record is None:
        return f"{'':8}  {role:<{ROLE_WIDTH}}  {line}"
    level = str(record.get("level", "info"))
    matters = "" if level in ("info", "debug") else f"{level.upper()}: "
    rest = "".join(f"  {key}={_shown(value)}" for key, value in record.items() if key not in _KNOWN)
    trace = f"\n{record['exception']}" if record.get("exception") else ""
    return f"{_clock(record.get('timestamp'), zone)}  {role:<{ROLE_WIDTH}}  {matters}{record['event']}{rest}{trace}"


def json_line(role: str, line: str) -> str:
    """A line for machines: the same JSON object with its role; other text becomes the event of one."""
    record = _record(line)
    return json.dumps({"role": role, **(record if record is not None else {"event": line})}, ensure_ascii=False)


def _record(line: str) -> dict[str, Any] | None:
    try:
        found: object = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) and "event" in found else None


def _clock(timestamp: object, zone: ZoneInfo) -> str:
    try:
        return f"{dt.datetime.fromisoformat(str(timestamp)).astimezone(zone):%H:%M:%S}"
    except ValueError:
        return " " * 8


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
