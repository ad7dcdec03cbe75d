"""Places on the bus: the id of an entry, and a position in all streams.

Both are texts that callers keep and hand back. An entry is ``facts:1764540000000-0``: its stream and its id there, which is
the server's time in milliseconds and a counter. A position is such places joined by commas.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bus.errors import BusError
from bus.streams import STREAMS

__all__ = ["ZERO", "EntryId", "Position", "entry_text", "latest_position", "parse_entry", "start_text"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SEQUENCE = 2**64 - 1
_PLACE = re.compile(r"(?P<stream>[a-z]+):(?P<milliseconds>[0-9]{1,20})-(?P<sequence>[0-9]{1,20})")


class EntryId(NamedTuple):
    """The id of an entry in its stream, in order of publication."""

    milliseconds: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.milliseconds}-{self.sequence}"

    @property
    def time(self) -> datetime:
        """When the entry was published, by the server's clock."""
        return _EPOCH + timedelta(milliseconds=self.milliseconds)

    @classmethod
    def parse(cls, text: bytes) -> "EntryId":
        """From the bytes that a server gives."""
        milliseconds, _, sequence = text.partition(b"-")
        return cls(int(milliseconds), int(sequence))


ZERO = EntryId(0, 0)
"""Before every entry."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far reading has come in each stream; a stream that is not named is read from ``elsewhere`` on."""

    places: Mapping[str, EntryId]
    elsewhere: EntryId = ZERO

    def __str__(self) -> str:
        return ",".join(entry_text(stream.name, self.of(stream.name)) for stream in STREAMS)

    def of(self, stream: str) -> EntryId:
        """The last entry of this stream that lies behind."""
        return self.places.get(stream, self.elsewhere)

    @classmethod
    def parse(cls, text: str | None) -> "Position":
        """From a position or an entry id; None is the beginning. Raises `BusError` for any other text.

        A single entry id says nothing of the other streams: there it counts as a moment, by its time.
        """
        if text is None:
            return cls({})
        places = dict(parse_entry(part) for part in text.split(","))
        return cls(places, min(places.values()) if len(places) == 1 else ZERO)

    @classmethod
    def latest(cls, texts: Sequence[str]) -> "Position":
        """Behind everything that lies before any of these positions or entry ids."""
        found = [cls.parse(text) for text in texts]
        return cls({stream.name: max(position.of(stream.name) for position in found) for stream in STREAMS})

    @classmethod
    def before(cls, moment: datetime) -> "Position":
        """Behind everything published before a moment. Raises `BusError` for a time without a zone."""
        if moment.tzinfo is None:
            raise BusError(f"{moment} has no time zone: use an aware datetime, such as datetime.now(UTC)")
        milliseconds = -((_EPOCH - moment) // timedelta(milliseconds=1))
        return cls({}, EntryId(milliseconds - 1, _LAST_SEQUENCE) if milliseconds > 0 else ZERO)


def latest_position(positions: Sequence[str]) -> str:
    """The position behind everything that lies before any of these. Raises `BusError` for a text that is none."""
    return str(Position.latest(positions))


def entry_text(stream: str, entry: EntryId) -> str:
    """The entry id as signals carry it."""
    return f"{stream}:{entry}"


def start_text(start: str | datetime) -> str:
    """Where a new group starts, as the text that readers understand."""
    return str(Position.before(start)) if isinstance(start, datetime) else start


def parse_entry(text: str) -> tuple[str, EntryId]:
    """The stream and the id in it; raises `BusError` for a text that the bus did not give."""
    found = _PLACE.fullmatch(text)
    if found is None or found["stream"] not in {stream.name for stream in STREAMS}:
        raise BusError(f"{text!r:.80} is not a place on the bus: use an entry id or a position that the bus gave you")
    return found["stream"], EntryId(int(found["milliseconds"]), int(found["sequence"]))
