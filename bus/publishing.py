"""What a publisher gets back: the first entry of its id, and what is said when a later one differs."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import structlog

from bus.contract import Signal
from bus.errors import BusError
from bus.payload import Draft, loads, same_content
from bus.places import EntryId, entry_text
from bus.streams import GROUP_BEHIND, GROUP_OVERRUN, Stream

__all__ = ["Written", "lateness", "outcome", "stored_signal"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """The first entry of an id, and its topic and payload where the id was known and its entry is still held."""

    entry: EntryId
    first: tuple[str, bytes] | None = None


def outcome(draft: Draft, written: Written, *, strict: bool) -> Signal:
    """The signal as it stands on the bus. Different content is logged, or refused when ``strict``."""
    topic, payload = written.first or (draft.topic, draft.payload)
    if topic != draft.topic or not same_content(payload, draft.payload):
        if strict:
            raise BusError(f"signal {draft.id!r} is on the bus with other content: publish new content under a new id")
        _log.info("signal already published with other content", signal_id=draft.id, topic=topic, offered_topic=draft.topic)
    return stored_signal(draft.stream.name, written.entry, draft.id, topic, payload)


def lateness(stream: Stream, group: str, now: datetime, *, dropped: bool) -> Signal:
    """The warning that a group is behind the bounds of a stream, or has lost signals: the same one all through an hour."""
    topic = GROUP_OVERRUN if dropped else GROUP_BEHIND
    # The name of a group may be as long as an id.
    who = sha256(group.encode()).hexdigest()[:16]
    return Signal(f"{topic}/{stream.name}/{who}/{now:%Y%m%dT%H}", topic, {"group": group, "stream": stream.name})


def stored_signal(stream: str, entry: EntryId, signal_id: str, topic: str, payload: bytes) -> Signal:
    """A signal from its stored parts; raises ValueError when the payload is not a JSON object."""
    return Signal(signal_id, topic, loads(payload), entry.time, entry_text(stream, entry))
