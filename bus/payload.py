"""What may be published: ids, and payloads that come back exactly as they went in.

JSON silently turns a tuple into a list and the key 1 into "1", and Python writes NaN although JSON has none. Such values are
refused with the path to them, so that no consumer ever sees something else than its publisher sent.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from bus.contract import Signal
from bus.errors import BusError
from bus.streams import Stream, stream_of
from bus.topics import check_topic

__all__ = ["DEPTH_LIMIT", "ID_LIMIT", "PAYLOAD_LIMIT", "Draft", "check_name", "draft", "loads", "same_content"]

ID_LIMIT = 512
"""Bytes in the id of a signal or the name of a group, as UTF-8."""
PAYLOAD_LIMIT = 256 * 1024
"""Bytes of a payload as JSON: a signal says that something happened; large content belongs in a store."""
DEPTH_LIMIT = 64
"""Levels of lists and objects in a payload."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked signal on its way: its stream, and its payload as the bytes that are stored."""

    id: str
    topic: str
    payload: bytes
    stream: Stream


def draft(signal: Signal) -> Draft:
    """Check a signal for publication; raises `BusError` saying what is wrong and what to do."""
    check_name("a signal id", signal.id)
    check_topic(signal.topic)
    return Draft(signal.id, signal.topic, _dumps(signal), stream_of(signal.topic))


def check_name(what: str, name: str) -> str:
    """The id or name itself; raises `BusError` when it is empty, too long or holds control characters."""
    if not isinstance(cast(object, name), str) or not name or _UNPRINTABLE.search(name) or len(name.encode()) > ID_LIMIT:
        raise BusError(f"{name!r:.80} cannot be {what}: use 1 to {ID_LIMIT} bytes of text without control characters")
    return name


def loads(data: bytes) -> dict[str, Any]:
    """The payload from its stored bytes; raises ValueError when they are not a JSON object."""
    payload = _DECODER.decode(data.decode())
    if not isinstance(payload, dict):
        raise ValueError("not a JSON object")
    return cast(dict[str, Any], payload)


def same_content(one: bytes, other: bytes) -> bool:
    """Whether two stored payloads say the same, whatever the order of their keys; 1, 1.0 and true differ."""
    return one == other or _canonical(one) == _canonical(other)


def _canonical(data: bytes) -> str:
    return json.dumps(json.loads(data), sort_keys=True)


def _dumps(signal: Signal) -> bytes:
    payload = cast(object, signal.payload)
    if not isinstance(payload, Mapping):
        raise BusError(f"the payload of signal {signal.id!r} is {_kind(payload)}: make it a JSON object (a dict)")
    content = dict(cast(Mapping[Any, Any], payload))
    if not _is_plain(content, 1):
        _check(content, "payload", signal.id, 1)
    try:
        data = _ENCODER.encode(content).encode()
    except ValueError as trouble:
        raise BusError(
            f"the payload of signal {signal.id!r} cannot be written as JSON ({trouble}): send it as text"
        ) from trouble
    if len(data) > PAYLOAD_LIMIT:
        raise BusError(
            f"the payload of signal {signal.id!r} has {len(data)} bytes, more than {PAYLOAD_LIMIT}: "
            "put the content in a store and publish its key"
        )
    return data


def _is_plain(value: object, depth: int) -> bool:
    """Whether `_check` has nothing to say: most payloads, told without making any path."""
    kind = type(value)
    if kind is str:
        return depth <= DEPTH_LIMIT and (cast(str, value).isascii() or not _SURROGATE.search(cast(str, value)))
    if depth > DEPTH_LIMIT:
        return False
    if kind is dict:
        items = cast(dict[object, object], value).items()
        return all(type(key) is str and _is_plain(key, depth) and _is_plain(item, depth + 1) for key, item in items)
    if kind is list:
        return all(_is_plain(item, depth + 1) for item in cast(list[object], value))
    return kind is int or value is None or kind is bool or (kind is float and math.isfinite(cast(float, value)))


def _check(value: object, path: str, signal_id: str, depth: int) -> None:
    """Refuse what JSON would change or cannot say, with the path to it."""
    trouble = _trouble(value) if depth <= DEPTH_LIMIT else f"is nested deeper than {DEPTH_LIMIT} levels: flatten it"
    if trouble:
        raise BusError(f"{path:.200} of signal {signal_id!r} {trouble}")
    if type(value) is dict:
        for key, item in cast(dict[object, object], value).items():
            if type(key) is not str:
                raise BusError(f"{path:.200} of signal {signal_id!r} has the key {key!r:.80}: keys must be text")
            _check(key, f"a key in {path}", signal_id, depth)
            _check(item, f"{path}.{key}", signal_id, depth + 1)
    elif type(value) is list:
        for place, item in enumerate(cast(list[object], value)):
            _check(item, f"{path}[{place}]", signal_id, depth + 1)


def _trouble(value: object) -> str | None:
    """What is wrong with this one value, or nothing."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, which JSON does not have: send None or a text"
    if isinstance(value, str) and _SURROGATE.search(value):
        return "holds half of a surrogate pair, which is not text: repair or replace it"
    if value is None or type(value) in (str, int, float, bool, list, dict):
        return None
    return f"is {_kind(value)}, which JSON does not have: send text, numbers, booleans, None, lists and dicts"


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"
