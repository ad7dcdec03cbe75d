"""What is pushed from a run and watched elsewhere: frames, their entries, and how a watcher puts them together again.

A segment's frames are numbered from 0; the segment is named by its run and attempt. A frame that is large travels as several
entries, its fragments. Whatever the transport, watching means the same: follow the newest segment, join the fragments, tell
what is missing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bus.errors import BusError

if TYPE_CHECKING:
    from bus.redis import RedisChannel

__all__ = [
    "CHANNEL_TIMEOUT",
    "FRAGMENT_BYTES",
    "FRAME_LIMIT",
    "ChannelFrame",
    "ChannelGap",
    "FrameEntry",
    "FrameJoiner",
    "content_of",
    "fragments",
    "open_channel",
]

FRAGMENT_BYTES = 64 * 1024
"""Bytes of a frame's data in one entry."""
CHANNEL_TIMEOUT = 2.0
"""Seconds to wait for a connection, and for a reply."""
FRAME_LIMIT = 16 * 1024 * 1024
"""Bytes of the data of a frame as JSON."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ChannelFrame:
    """A frame as a watcher gets it.

    ``sequence`` counts from 0 in each ``stream_id``, and each segment of a run is a stream of its own. The last frame of a
    stream is of type ``stream.interrupted``, ``stream.completed`` or ``stream.failed``; a segment whose process died has none.
    ``cursor`` is the place to watch on from.
    """

    workflow_id: str
    run_id: str
    attempt: int
    sequence: int
    type: str
    data: Any
    cursor: str

    @property
    def stream_id(self) -> str:
        """The segment that the frame comes from."""
        return f"{self.run_id}.{self.attempt}"


@dataclass(frozen=True, slots=True)
class ChannelGap:
    """Frames are missing before the next one: the channel holds a bounded number of them, or they were never pushed.

    ``missing`` says how many of the segment that is watched; None where nobody knows.
    """

    missing: int | None


@dataclass(frozen=True, slots=True)
class FrameEntry:
    """One entry of a channel: a frame, or the ``index``-th of its ``total`` fragments."""

    run_id: str
    attempt: int
    sequence: int
    index: int
    total: int
    type: str
    part: bytes
    cursor: str


def open_channel(url: str) -> "RedisChannel":
    """The channel behind the URL of a Redis or Valkey server. No connection is made yet.

    Nobody waits long for this channel: a server that does not answer within `CHANNEL_TIMEOUT` counts as lost. Raises
    `BusError` naming the part of the URL that is wrong.
    """
    from bus.redis import RedisChannel
    from persistence.redis import connect

    try:
        client = connect(url, socket_timeout=CHANNEL_TIMEOUT, socket_connect_timeout=CHANNEL_TIMEOUT)
    except ValueError as trouble:
        # The words of the client library, not the URL, which may hold a password.
        raise BusError(f"cannot read the URL of the channel: {trouble}") from trouble
    return RedisChannel(client)


def content_of(frame: Any) -> tuple[str, bytes]:
    """The type of a frame and its data as JSON. A frame without ``type`` and ``data`` is of type ``frame``, and all data.

    Raises `BusError` for what JSON cannot say, and for a frame that is too large.
    """
    kind, data = (str(frame.type), frame.data) if hasattr(frame, "type") and hasattr(frame, "data") else ("frame", frame)
    try:
        written = _ENCODER.encode(data).encode()
    except (TypeError, ValueError, RecursionError) as trouble:
        raise BusError(
            f"a frame of type {kind!r:.80} cannot be written as JSON ({trouble}): let the stream adapter make it plain data"
        ) from trouble
    if len(written) > FRAME_LIMIT:
        raise BusError(
            f"a frame of type {kind!r:.80} has {len(written)} bytes, more than {FRAME_LIMIT}: put the content in a store"
        )
    return kind, written


def fragments(data: bytes) -> list[bytes]:
    """The data in pieces of one entry each; one piece, maybe empty, at least."""
    return [data[start : start + FRAGMENT_BYTES] for start in range(0, max(len(data), 1), FRAGMENT_BYTES)]


class FrameJoiner:
    """Puts entries together to frames, in the order in which they stand in the channel, and notices what is missing.

    ``reached`` is the last entry of the frame that a watcher has got last. ``lost`` says that nobody knows what lies before
    the first entry.
    """

    def __init__(self, workflow_id: str, reached: FrameEntry | None = None, *, lost: bool = False) -> None:
        self._workflow_id = workflow_id
        self._segment = None if reached is None else (reached.run_id, reached.attempt)
        self._sequence = 0 if reached is None else reached.sequence + 1
        self._parts: list[bytes] = []
        self._lost = lost

    def add(self, entry: FrameEntry) -> Iterator[ChannelFrame | ChannelGap]:
        """What this entry brings: nothing yet, a frame, or a gap and maybe a frame."""
        if self._segment != (entry.run_id, entry.attempt):
            # The frame that its process died over was never finished; the new segment begins at its own beginning.
            self._segment, self._sequence, self._parts = (entry.run_id, entry.attempt), 0, []
        if entry.sequence < self._sequence:
            return  # the rest of a frame whose beginning is gone
        missing = self._missing(entry)
        if missing or self._lost:
            yield ChannelGap(None if self._lost else missing)
            self._lost = False
        if entry.sequence < self._sequence:
            return
        self._parts.append(entry.part)
        if len(self._parts) == entry.total:
            yield self._joined(entry)

    def _missing(self, entry: FrameEntry) -> int:
        """How many frames are known from now on never to come: those before this entry, and its own without its beginning."""
        expected = self._sequence
        if entry.sequence != expected:
            self._sequence, self._parts = entry.sequence, []
        if entry.index != len(self._parts):
            self._sequence, self._parts = entry.sequence + 1, []
        return self._sequence - expected

    def _joined(self, entry: FrameEntry) -> ChannelFrame | ChannelGap:
        data, self._parts, self._sequence = b"".join(self._parts), [], entry.sequence + 1
        try:
            content = json.loads(data)
        except ValueError:
            return ChannelGap(1)  # somebody else wrote here; whoever watches must get past it
        return ChannelFrame(self._workflow_id, entry.run_id, entry.attempt, entry.sequence, entry.type, content, entry.cursor)
