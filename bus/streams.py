"""Which stream a topic goes to, and how much each stream holds. Decided here for every transport.

Heartbeats have a short stream of their own, so that beats never crowd out facts. Both streams are bounded. Past the number of
its entries a stream drops its oldest signals, but holds what a group still needs, up to its ceiling, and says so by a signal
`GROUP_BEHIND`. Past the ceiling or the retention signals go whether read or not, and `GROUP_OVERRUN` says so: a group that
falls so far behind loses them. What it had taken and not yet acknowledged is counted when it is found to be gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bus.topics import matches_any

__all__ = [
    "FACTS",
    "GROUP_BEHIND",
    "GROUP_OVERRUN",
    "HEARTBEATS",
    "HEARTBEAT_TOPIC",
    "STREAMS",
    "Stream",
    "stream_of",
    "streams_for",
]

HEARTBEAT_TOPIC = "agent.heartbeat"
"""The topic of beats, and of nothing else."""
GROUP_BEHIND = "bus.group.behind"
"""Says that a stream is longer than its bounds, for the sake of a group. At most once an hour for a stream and group."""
GROUP_OVERRUN = "bus.group.overrun"
"""Says that a stream dropped signals that a group still needed. At most once an hour for a stream and group."""
_HOUR = 3600
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream and its bounds.

    It holds about ``entries`` signals (there may be some hundred more; for a slow group up to the ``ceiling``), none older
    than ``retention`` seconds once something newer was published. An id is remembered for ``window`` seconds after its last
    publication; the window is longer than the retention, so a stream never holds one id twice.
    """

    name: str
    entries: int
    retention: int
    window: int

    @property
    def ceiling(self) -> int:
        """Entries that a stream holds at the most, whoever still needs them (and some hundred more)."""
        return 2 * self.entries


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
