"""From what stands in a stream to signals. Whatever another program wrote there is reported and passed over."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import structlog

from bus.contract import DeadLetter, Signal
from bus.places import EntryId
from bus.publishing import stored_signal

__all__ = ["RawEntry", "entries_between", "letter_of", "signal_of"]

RawEntry = tuple[bytes, Mapping[bytes, bytes]]
"""An entry as the client library gives it: id and fields."""
Fetch = Callable[[str], list[RawEntry]]
"""The next page of a stream from a lower bound as XRANGE takes it."""

_log = structlog.get_logger(__name__)


def entries_between(fetch: Fetch, after: EntryId, page_size: int) -> Iterator[RawEntry]:
    """The entries behind this one, page by page as they are asked for."""
    page = fetch(f"({after}")
    while page:
        yield from page
        page = fetch(f"({page[-1][0].decode()}") if len(page) == page_size else []


def signal_of(stream: str, entry: bytes, fields: Mapping[bytes, bytes]) -> Signal | None:
    """The signal of an entry, or None when it is not one."""
    try:
        signal_id, topic = fields[b"i"].decode(), fields[b"t"].decode()
        return stored_signal(stream, EntryId.parse(entry), signal_id, topic, fields[b"p"])
    except (KeyError, ValueError) as trouble:
        _log.error("not a signal, passed over: delete this entry", stream=stream, entry=entry.decode(), trouble=str(trouble))
        return None


def letter_of(stream: str, entry: bytes, fields: Mapping[bytes, bytes]) -> DeadLetter | None:
    """The dead letter of an entry in a dead letter stream, or None when it is not one."""
    signal = signal_of(stream, fields.get(b"e", entry), fields)
    if signal is None:
        return None
    return DeadLetter(signal, fields[b"x"].decode(), int(fields[b"n"]), EntryId.parse(entry).time)


def paired(flat: Any) -> dict[bytes, bytes]:
    """Fields as a script returns them, name and value in turn."""
    parts = cast(list[bytes], flat)
    return dict(zip(parts[::2], parts[1::2], strict=True))
