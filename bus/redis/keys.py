"""Every key that the bus keeps in Redis.

``B`` is ``{jarvis:signals}`` unless the bus is told another name; the braces are the hash tag by which all keys share a slot,
so that one script may write them and one blocking read may watch all streams, also in a Cluster. ``S`` is the name of a
stream: ``facts`` or ``heartbeats`` (`bus.streams`).

key                    type        what                                                     written by
B:S                    stream      signals: fields i (id), t (topic), p (payload as JSON);  publish.lua
                                   the entry id is the server's time of publication
B:S:id:<signal id>     string      entry id of the first publication; lives for the         publish.lua
                                   stream's window, anew with every publication
B:S:group:<g>:retry    sorted set  "<entry id> <attempts so far>" -> when it is due,        put_off.lua, replay.lua,
                                   milliseconds of the server's clock                       take.lua
B:S:group:<g>:dead     stream      dead letters: e (entry id), i, t, p, n (attempts),       bury.lua, replay.lua
                                   x (error); the entry id is the time of death

The groups themselves, their places and what their consumers have in hand, are Redis' own consumer groups on ``B:S``.
"""

from dataclasses import dataclass

from bus.errors import BusError

__all__ = ["BusKeys", "StreamKeys"]


@dataclass(frozen=True, slots=True)
class StreamKeys:
    """The keys of one stream."""

    stream: str

    def known(self, signal_id: str) -> str:
        """Where the first entry of a signal id is remembered."""
        return f"{self.stream}:id:{signal_id}"

    def retry(self, group: str) -> str:
        """The deliveries of a group that wait for their next try."""
        return f"{self.stream}:group:{group}:retry"

    def dead(self, group: str) -> str:
        """The dead letters of a group."""
        return f"{self.stream}:group:{group}:dead"


@dataclass(frozen=True, slots=True)
class BusKeys:
    """The keys of one bus. Raises `BusError` for a name that would break the hash tag."""

    name: str

    def __post_init__(self) -> None:
        if not self.name or set("{}") & set(self.name):
            raise BusError(f"{self.name!r:.80} cannot be the name of a bus: use a text without braces")

    def of(self, stream: str) -> StreamKeys:
        """The keys of a stream by its name."""
        return StreamKeys(f"{{{self.name}}}:{stream}")
