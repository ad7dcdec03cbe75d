"""Every key that the store keeps in Redis.

The prefix is ``jarvis:workflow:`` unless told otherwise. ``{17}`` is one of 64 hash tags, chosen by the partition's name, so
that all that one write touches shares a slot, also in a Cluster. No key has a time to live.

key                    type         what                                                          written by
<prefix>{17}:p:<name>  hash         one partition: record key -> bytes                            all three intents
<prefix>{17}:due       sorted set   partition -> due time, only where there is one                all three intents
<prefix>{17}:entries   hash         partition -> index entry as JSON                              all three intents
<prefix>{17}:lookup    sorted set   "<kind>:<value> NUL <partition>", all of score 0, so that a   all three intents
                                    range by member finds a name, status, tag or awaited event
<prefix>{17}:log:<log> stream       log entries, field "d"                                        all three intents
"""

from dataclasses import dataclass
from zlib import crc32

__all__ = ["SHARDS", "Keys", "shard_of"]

SHARDS = 64
"""Hash tags over which partitions are spread. Part of the stored format."""


def shard_of(partition: str) -> int:
    """The hash tag of a partition. Part of the stored format."""
    return crc32(partition.encode()) % SHARDS


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one hash tag."""

    prefix: str
    shard: int

    def _key(self, rest: str) -> str:
        return f"{self.prefix}{{{self.shard}}}:{rest}"

    def partition(self, name: str) -> str:
        """The hash of one partition."""
        return self._key(f"p:{name}")

    @property
    def due(self) -> str:
        """The sorted set of due times."""
        return self._key("due")

    @property
    def entries(self) -> str:
        """The hash of index entries."""
        return self._key("entries")

    @property
    def lookup(self) -> str:
        """The sorted set that finds entries by name, status or tag."""
        return self._key("lookup")

    def log(self, name: str) -> str:
        """The stream of one log."""
        return self._key(f"log:{name}")
