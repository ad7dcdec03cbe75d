"""The usual value types that records hold: how each becomes JSON and comes back equal in type and value."""

import base64
import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PosixPath, PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

__all__ = ["COLLECTIONS_BY_NAME", "COLLECTION_KINDS", "VALUES_BY_NAME", "VALUE_KINDS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One type: its name in records, and both directions. ``to_json`` raises ValueError for what cannot be kept exactly."""

    type: type[Any]
    name: str
    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


def _zoned(value: dt.datetime | dt.time) -> Any:
    zone = value.tzinfo
    if zone is None or isinstance(zone, dt.timezone):
        return [value.replace(fold=0).isoformat(), None, 1] if value.fold else value.isoformat()
    key = getattr(zone, "key", None)
    if not isinstance(zone, ZoneInfo) or key is None:
        raise ValueError(f"its zone {zone!r} has no IANA name; use zoneinfo.ZoneInfo or a fixed offset")
    return [value.replace(tzinfo=None).isoformat(), key, value.fold]


def _zoned_back(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def back(stored: Any) -> Any:
        if isinstance(stored, str):
            return parse(stored)
        text, zone, fold = stored
        moment = parse(text).replace(fold=fold)
        return moment if zone is None else moment.replace(tzinfo=ZoneInfo(zone))

    return back


def _bytes(stored: str) -> bytes:
    return base64.b64decode(stored, validate=True)


def _surrogates(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def _ordered(value: Any) -> list[Any]:
    return sorted(value, key=repr)


_VALUES = (
    Kind(bytes, "bytes", lambda value: base64.b64encode(value).decode(), _bytes),
    Kind(dt.datetime, "datetime", _zoned, _zoned_back(dt.datetime.fromisoformat)),
    Kind(dt.date, "date", dt.date.isoformat, dt.date.fromisoformat),
    Kind(dt.time, "time", _zoned, _zoned_back(dt.time.fromisoformat)),
    Kind(dt.timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds], lambda v: dt.timedelta(*v)),
    Kind(Decimal, "decimal", str, Decimal),
    Kind(uuid.UUID, "uuid", str, uuid.UUID),
    Kind(PosixPath, "path", str, PosixPath),
    Kind(PurePosixPath, "purepath", str, PurePosixPath),
    Kind(PureWindowsPath, "windowspath", str, PureWindowsPath),
)
_COLLECTIONS = (
    Kind(tuple, "tuple", list, tuple),
    Kind(set, "set", _ordered, set),
    Kind(frozenset, "frozenset", _ordered, frozenset),
)
VALUE_KINDS: dict[type[Any], Kind] = {kind.type: kind for kind in _VALUES}
_AS_LAST_RESORT = (
    Kind(float, "float", repr, float),
    Kind(str, "text", _surrogates, lambda stored: _bytes(stored).decode("utf-8", "surrogatepass")),
)
"""For the few values of JSON's own types that JSON cannot write: infinities, text with lone surrogates."""
VALUES_BY_NAME = {kind.name: kind for kind in (*_VALUES, *_AS_LAST_RESORT)}
COLLECTION_KINDS: dict[type[Any], Kind] = {kind.type: kind for kind in _COLLECTIONS}
COLLECTIONS_BY_NAME = {kind.name: kind for kind in _COLLECTIONS}
