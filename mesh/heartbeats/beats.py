"""What a beat is: an agent's name and a moment. Checks and decisions that all stores share."""

import datetime as dt
import re

from mesh.heartbeats.errors import HeartbeatStoreError

__all__ = ["check_beat", "from_microseconds", "newest", "to_microseconds"]

NAME_LIMIT = 512
"""Bytes in the name of an agent, as UTF-8."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def check_beat(agent: str, at: dt.datetime | None) -> None:
    """Raises `HeartbeatStoreError` for a name that is no line of text, or a time without a zone."""
    if not agent or _UNPRINTABLE.search(agent) or len(agent.encode()) > NAME_LIMIT:
        raise HeartbeatStoreError(f"{agent!r:.80} cannot be the name of an agent: use 1 to {NAME_LIMIT} bytes on one line")
    if at is not None and at.utcoffset() is None:
        raise HeartbeatStoreError(f"the beat of {agent!r:.80} at {at} has no time zone: give it one")


def newest(before: dt.datetime | None, at: dt.datetime | None, now: dt.datetime) -> dt.datetime:
    """The last moment an agent was seen, once this beat is in: never back, and never in the future of the store's clock."""
    seen = min(at or now, now)
    return seen if before is None else max(before, seen)


def to_microseconds(moment: dt.datetime) -> int:
    """A moment as stored: whole microseconds since 1970 in UTC."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(stored: int) -> dt.datetime:
    """The moment, in UTC."""
    return _EPOCH + stored * _MICROSECOND
