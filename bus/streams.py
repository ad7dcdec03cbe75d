"""Which stream a topic goes to, and how much each stream holds. Decided here for every transport.

Heartbeats have a short stream of their own, so that beats never crowd out facts. Both streams are bounded: past its bounds a
stream drops its oldest signals, read or not. A group that falls so far behind loses them; what it had taken and not yet
acknowledged is counted when it is found to be gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bus.topics import matches_any

__all__ = ["FACTS", "HEARTBEATS", "HEARTBEAT_TOPIC", "STREAMS", "Stream", "stream_of", "streams_for"]

HEARTBEAT_TOPIC = "agent.heartbeat"
"""The topic of beats, and of nothing else."""
_HOUR = 3600
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream and its bounds.

    It holds about ``entries`` signals (a server trims in blocks: there may be some hundred more), none older than
    ``retention`` seconds once something newer was published. An id is remembered for ``window`` seconds after its last
    publication; the window is longer than the retention, so a stream never holds one id twice.
    """

    name: str
    entries: int
    retention: int
    window: int


FACTS = Stream("facts", entries=100_000, retention=30 * _DAY, window=45 * _DAY)
HEARTBEATS = Stream("heartbeats", entries=1_000, retention=_HOUR, window=2 * _HOUR)
STREAMS = (FACTS, HEARTBEATS)


def stream_of(topic: str) -> Stream:
    """The stream that a topic goes to."""
    return HEARTBEATS if topic == HEARTBEAT_TOPIC else FACTS


def streams_for(patterns: Sequence[str]) -> tuple[Stream, ...]:
    """The streams that may hold a topic which one of the patterns stands for."""
    facts = any(pattern != HEARTBEAT_TOPIC for pattern in patterns)
    beats = matches_any(patterns, HEARTBEAT_TOPIC)
    return tuple(stream for stream, wanted in ((FACTS, facts), (HEARTBEATS, beats)) if wanted)
