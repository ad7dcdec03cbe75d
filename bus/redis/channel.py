"""A channel in Redis or Valkey: runs push their frames there, and people on other machines watch.

``C`` is ``{jarvis:channel:<workflow id>}`` unless the channel is told another name; the braces keep both keys in one slot.

key       type    what                                                                           written by
C:frames  stream  o (bytes pushed so far), r (run), a (attempt), n (sequence), f (index of the   append_frame.lua
                  fragment), m (of how many), t (type), p (a part of the data, which is JSON)
C:newest  hash    the segment that the channel belongs to: run, attempt, begun (1 once it has    claim.lua,
                  pushed); first (the first entry of the segment that pushed last); bytes        append_frame.lua
                  (pushed so far)

A segment claims the channel when it is opened, so that what an older one pushes late never takes it back. Both keys are
bounded, and expire when nothing has been pushed for a while.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import structlog

from bus.channel import ChannelFrame, ChannelGap, FrameEntry, FrameJoiner, content_of, fragments
from bus.errors import BusError, BusUnreachableError
from bus.places import ZERO, EntryId
from bus.redis.entries import RawEntry
from persistence.redis import Client, RedisLink, load_script

__all__ = ["DEFAULT_NAME", "ENTRIES", "KEEP", "SIZE", "AsyncRedisChannel", "RedisChannel"]

DEFAULT_NAME = "jarvis:channel"
ENTRIES = 10_000
"""Entries that a channel holds of one workflow; the oldest go first."""
SIZE = 32 * 1024 * 1024
"""Bytes of frames that it holds of one workflow."""
KEEP = 24 * 3600
"""Seconds that they are kept after the last one."""
_PAGE = 50
"""Entries in one read."""

_CLAIM = load_script("bus.redis", "rights", "claim")
_APPEND = load_script("bus.redis", "rights", "append_frame")
_CURSOR = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_log = structlog.get_logger(__name__)


class RedisChannel:
    """The channel of one server, for any number of workflows, and both its ends: segments push, watchers watch.

    ``name`` is what its keys start with. A push is tried once: a server in trouble costs a segment the rest of its frames and
    no more, so let the client's time-outs be short (`bus.open_channel` does).
    """

    def __init__(
        self, client: Client, name: str = DEFAULT_NAME, *, entries: int = ENTRIES, size: int = SIZE, keep: int = KEEP
    ) -> None:
        if not name or set("{}") & set(name):
            raise BusError(f"{name!r:.80} cannot be the name of a channel: use a text without braces")
        if min(entries, size, keep) < 1:
            raise BusError("a channel must hold something for a while: use positive entries, size and keep")
        self._client = client
        self._link = self._new_link()
        self._name = name
        self._bounds = (entries, size, keep)

    def open(self, workflow_id: str, run_id: str, attempt: int) -> "RedisFeed":
        """The feed of one segment, which has the channel from now on: one call to the server, tried once.

        One that fails is not told here. The first frame makes up for it, or tells of the same trouble.
        """
        feed = RedisFeed(self._link, self._keys(workflow_id), workflow_id, (run_id, attempt), self._bounds)
        feed.claim()
        return feed

    def watch(
        self, workflow_id: str, after: str | None = None, timeout: float | None = None
    ) -> Generator[ChannelFrame | ChannelGap]:
        """The frames of a workflow as they come, until nothing has come for ``timeout`` seconds; without one for ever.

        They begin with the newest segment, from its beginning as far as it is still held, or behind the cursor of a frame that
        was watched before; a new segment is followed when it begins. A `ChannelGap` stands for what is missing. Blocks. Raises
        `BusError` for a cursor that is none, and `BusUnreachableError` when the server does not answer for a while: watch
        again, after the last cursor.
        """
        _refuse_on_a_loop()
        watcher = self._watcher(workflow_id, after)
        patience = _Patience(timeout)
        while patience.left() > 0:
            if news := watcher.read(patience.left()):
                yield from news
                patience.renew()

    @property
    def aio(self) -> "AsyncRedisChannel":
        """Watching on an event loop."""
        return AsyncRedisChannel(self._watcher)

    def _watcher(self, workflow_id: str, after: str | None) -> "_Watcher":
        # Each watcher has a connection of its own: a pool has few, and a watcher holds one all the time.
        return _Watcher(self._new_link(), self._keys(workflow_id), workflow_id, after)

    def _new_link(self) -> RedisLink:
        return RedisLink(self._client, error=BusError, unreachable=BusUnreachableError)

    def _keys(self, workflow_id: str) -> tuple[str, str]:
        tag = f"{{{self._name}:{workflow_id}}}"
        return f"{tag}:frames", f"{tag}:newest"


class AsyncRedisChannel:
    """`RedisChannel.aio`. Each watcher waits in a thread of its own."""

    def __init__(self, watcher: "Callable[[str, str | None], _Watcher]") -> None:
        self._watcher = watcher

    async def watch(
        self,
        workflow_id: str,
        after: str | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[ChannelFrame | ChannelGap]:
        """See `RedisChannel.watch`."""
        watcher = self._watcher(workflow_id, after)
        thread = ThreadPoolExecutor(1, thread_name_prefix="channel-watcher")
        patience = _Patience(timeout)
        try:
            while patience.left() > 0:
                news = await asyncio.get_running_loop().run_in_executor(thread, watcher.read, patience.left())
                for one in news:
                    yield one
                if news:
                    patience.renew()
        finally:
            # A read that was cancelled ends by itself, in a moment.
            thread.shutdown(wait=False)


# --- pushing ----------------------------------------------------------------------------------------------------------------


class RedisFeed:
    """The frames of one segment on their way to the server.

    After the first one that does not get through none is tried any more, but for the last of all. Each is counted, so that
    watchers learn how many they miss.
    """

    def __init__(
        self,
        link: RedisLink,
        keys: tuple[str, str],
        workflow_id: str,
        segment: tuple[str, int],
        bounds: tuple[int, int, int],
    ) -> None:
        self._link = link
        self._keys = keys
        self._workflow_id = workflow_id
        self._segment = segment
        self._bounds = bounds
        self._sequence = 0
        self._claimed = False
        self._broken = False
        self._outdated = False

    def claim(self) -> None:
        """Take the channel over from older segments, if the server answers."""
        with suppress(BusError):
            self._link.run(self._link.call(_CLAIM, self._keys, [*self._segment, self._bounds[-1]]))
            self._claimed = True

    def send(self, frame: Any) -> None:
        """Push one frame: of its ``type`` and ``data``, or all data. Raises `BusError` for what JSON cannot say."""
        sequence = self._next()
        if not self._broken:
            self._push(sequence, *content_of(frame))

    def interrupted(self, state: object) -> None:
        """The run is suspended."""
        self._last("interrupted")

    def completed(self, state: object) -> None:
        """The run is completed."""
        self._last("completed")

    def failed(self, error: BaseException) -> None:
        """The segment has failed."""
        self._last("failed")

    def _last(self, how: str) -> None:
        if not self._outdated:
            self._push(self._next(), *content_of(_Last(f"stream.{how}", {"workflow_id": self._workflow_id})))

    def _next(self) -> int:
        sequence, self._sequence = self._sequence, self._sequence + 1
        return sequence

    def _push(self, sequence: int, kind: str, data: bytes) -> None:
        parts = fragments(data)
        try:
            for index, part in enumerate(parts):
                self._append(sequence, index, len(parts), kind, part)
        except BusError:
            self._broken = True
            raise

    def _append(self, sequence: int, index: int, total: int, kind: str, part: bytes) -> None:
        """Once: repeated after a lost reply, an entry would stand there twice."""
        args: Sequence[str | bytes | int] = [*self._segment, int(not self._claimed), sequence, index, total, kind, part]
        if self._link.run(self._link.call(_APPEND, self._keys, [*args, *self._bounds])) is None:
            self._outdated = True
            raise BusError(f"a later segment of workflow {self._workflow_id!r} has taken its channel over")
        self._claimed = True


class _Last:
    """The frame that ends a stream."""

    def __init__(self, kind: str, data: Any) -> None:
        self.type = kind
        self.data = data


# --- watching ---------------------------------------------------------------------------------------------------------------


class _Watcher:
    """One reader of one channel, and how far it is."""

    def __init__(self, link: RedisLink, keys: tuple[str, str], workflow_id: str, after: str | None) -> None:
        if after is not None and not _CURSOR.fullmatch(after):
            raise BusError(f"{after!r:.80} is not a place in a channel: use the cursor of a frame that was watched")
        self._link = link
        self._frames, self._newest = keys
        self._workflow_id = workflow_id
        self._after = after
        self._joiner: FrameJoiner | None = None

    def read(self, seconds: float) -> list[ChannelFrame | ChannelGap]:
        """What has come, after so many seconds at the most; it may be nothing sooner."""
        joiner, after = self._begun()
        block = max(int(min(seconds, (self._link.reply_timeout or 10.0) / 2) * 1000), 1)
        reply = self._link.repeat(lambda client: client.xread({self._frames: after}, count=_PAGE, block=block))[0]
        news: list[ChannelFrame | ChannelGap] = []
        for raw in cast(list[RawEntry], reply[0][1] if reply else []):
            self._after = raw[0].decode()
            entry = _entry(raw, self._frames)
            if entry is not None:
                news += joiner.add(entry)
        return news

    def _begun(self) -> tuple[FrameJoiner, str]:
        """Where to read on. At first that is found out."""
        if self._joiner is None:
            if self._after is None:
                self._joiner, self._after = FrameJoiner(self._workflow_id), self._before_newest()
            else:
                self._joiner = self._resumed(self._after)
        return self._joiner, cast(str, self._after)

    def _before_newest(self) -> str:
        """The place just before the newest segment."""
        first = self._link.repeat(lambda client: client.hget(self._newest, "first"))[0]
        return str(ZERO if first is None else _just_before(EntryId.parse(first)))

    def _resumed(self, after: str) -> FrameJoiner:
        held = self._link.repeat(lambda client: client.xrange(self._frames, min=after, max=after))[0]
        reached = _entry(held[0], self._frames) if held else None
        return FrameJoiner(self._workflow_id, reached, lost=reached is None)


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BusError("watch() would block the running event loop: use `async for … in channel.aio.watch(…)`")


class _Patience:
    """How much longer to wait for news."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self.renew()

    def renew(self) -> None:
        self._deadline = None if self._timeout is None else time.monotonic() + self._timeout

    def left(self) -> float:
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()


def _just_before(entry: EntryId) -> EntryId:
    return EntryId(entry.milliseconds, entry.sequence - 1) if entry.sequence else EntryId(entry.milliseconds - 1, 2**64 - 1)


def _entry(raw: RawEntry, stream: str) -> FrameEntry | None:
    """The entry of a frame, or None, with a line of log, for what some other program wrote."""
    place, fields = raw
    try:
        run, kind = fields[b"r"].decode(), fields[b"t"].decode()
        attempt, sequence, index, total = (int(fields[name]) for name in (b"a", b"n", b"f", b"m"))
        return FrameEntry(run, attempt, sequence, index, total, kind, fields[b"p"], place.decode())
    except (KeyError, ValueError) as trouble:
        _log.error("not a frame, passed over: delete this entry", stream=stream, entry=place.decode(), trouble=str(trouble))
        return None
