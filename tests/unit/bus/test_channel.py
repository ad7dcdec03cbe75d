"""Frames pushed from runs and watched elsewhere, without a server (P)."""

import asyncio
import json
import random
import threading
from typing import Any

import fakeredis
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from bus import BusError, BusUnreachableError, ChannelFrame, ChannelGap, RedisChannel, open_channel
from bus.channel import FRAGMENT_BYTES, FRAME_LIMIT, FrameEntry, FrameJoiner, fragments

SILENCE = 0.05
"""Seconds without news that end a watch here."""


class Frame:
    def __init__(self, kind: str, data: Any) -> None:
        self.type = kind
        self.data = data


@pytest.fixture
def server():
    return fakeredis.FakeServer()


@pytest.fixture
def client(server):
    return fakeredis.FakeRedis(server=server)


@pytest.fixture
def channel(client):
    return RedisChannel(client)


def _plainly(channel: RedisChannel, *args: Any) -> list[Any]:
    return list(channel.watch(*args, timeout=SILENCE))


def _on_a_loop(channel: RedisChannel, *args: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [one async for one in channel.aio.watch(*args, timeout=SILENCE)]

    return asyncio.run(main())


@pytest.fixture(params=[_plainly, _on_a_loop], ids=["watch", "aio.watch"])
def watched(request, channel):
    """Return what watches until there is silence."""
    return lambda *args: request.param(channel, *args)


def told(news: list[ChannelFrame | ChannelGap]) -> list[Any]:
    """What is worth comparing: the number and content of frames, and gaps as they are."""
    return [one if isinstance(one, ChannelGap) else (one.stream_id, one.sequence, one.type, one.data) for one in news]


# --- what is pushed is watched ----------------------------------------------------------------------------------------------


def test_frames_are_watched_as_they_were_pushed_and_numbered_from_zero(channel, watched) -> None:
    feed = channel.open("order:17", "r", 2)
    feed.send(Frame("step", {"at": 1}))
    feed.send(["bare", None, "ü"])
    feed.completed(object())
    news = watched("order:17")
    assert told(news) == [
        ("r.2", 0, "step", {"at": 1}),
        ("r.2", 1, "frame", ["bare", None, "ü"]),
        ("r.2", 2, "stream.completed", {"workflow_id": "order:17"}),
    ]
    assert {(one.workflow_id, one.run_id, one.attempt) for one in news} == {("order:17", "r", 2)}
    assert watched("order:18") == []


@pytest.mark.parametrize("how", ["interrupted", "completed", "failed"])
def test_the_end_says_how_and_nothing_of_the_state_or_the_error(channel, watched, how) -> None:
    getattr(channel.open("w", "r", 1), how)(ValueError("secret"))
    assert told(watched("w")) == [("r.1", 0, f"stream.{how}", {"workflow_id": "w"})]


@pytest.mark.parametrize("size", [0, 1, FRAGMENT_BYTES - 2, FRAGMENT_BYTES - 1, 3 * FRAGMENT_BYTES, 1_000_001])
def test_c262_a_big_frame_travels_in_fragments_and_arrives_exactly(channel, client, watched, size) -> None:
    text = "".join(random.Random(size).choices("aü\n€\0", k=size))
    feed = channel.open("w", "r", 1)
    for data in ("before", text, "after"):
        feed.send(Frame("text", data))
    entries = client.xrange("{jarvis:channel:w}:frames")
    length = len(json.dumps(text, ensure_ascii=False).encode())
    total = max(1, -(-length // FRAGMENT_BYTES))
    places = [tuple(int(fields[name]) for name in (b"n", b"f", b"m")) for _, fields in entries]
    assert places == [(0, 0, 1), *((1, index, total) for index in range(total)), (2, 0, 1)]
    assert all(len(fields[b"p"]) <= FRAGMENT_BYTES for _, fields in entries)
    assert [one.data for one in watched("w")] == ["before", text, "after"]


def test_a_watcher_goes_on_after_its_cursor_also_into_the_next_segment(channel, watched) -> None:
    feed = channel.open("w", "r", 1)
    for number in range(3):
        feed.send("x" * number * FRAGMENT_BYTES)
    seen = watched("w")
    assert watched("w", seen[-1].cursor) == []
    assert watched("w", seen[0].cursor) == seen[1:]
    feed.interrupted(object())
    channel.open("w", "r", 2).send("resumed")
    assert told(watched("w", seen[1].cursor)) == [
        *told(seen[2:]),
        ("r.1", 3, "stream.interrupted", {"workflow_id": "w"}),
        ("r.2", 0, "frame", "resumed"),
    ]


def test_a_late_watcher_begins_with_the_newest_segment(channel, watched) -> None:
    for attempt in (1, 2, 3):
        channel.open("w", "r", attempt).send("older")
    feed = channel.open("w", "r", 4)
    feed.send("a")
    feed.send("b")
    assert told(watched("w")) == [("r.4", 0, "frame", "a"), ("r.4", 1, "frame", "b")]


@pytest.mark.parametrize("cursor", ["", "x", "1", "1-", "-1-0", "0-0 ", "$", "+", "facts:1-0"])
def test_a_cursor_that_is_none_is_refused(watched, cursor) -> None:
    with pytest.raises(BusError, match="not a place in a channel"):
        watched("w", cursor)


def test_a_blocking_watch_on_an_event_loop_is_refused(channel) -> None:
    async def main() -> None:
        next(channel.watch("w"))

    with pytest.raises(BusError, match=r"aio\.watch"):
        asyncio.run(main())


def test_a_watcher_that_is_cancelled_on_its_loop_leaves_nothing_behind(channel) -> None:
    async def main() -> None:
        async def watch() -> None:
            async for _ in channel.aio.watch("w"):
                pass

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name.startswith("channel-watcher"):
            thread.join(10)
            assert not thread.is_alive()


# --- segments that overlap --------------------------------------------------------------------------------------------------


def test_what_an_older_segment_pushes_late_is_refused_and_never_watched(channel, watched) -> None:
    old = channel.open("w", "r", 1)
    old.send("old 0")
    new = channel.open("w", "r", 2)
    new.send("new 0")
    with pytest.raises(BusError, match="later segment"):
        old.send("old 1")
    old.send("old 2")
    old.failed(ValueError())
    new.send("new 1")
    assert told(watched("w")) == [("r.2", 0, "frame", "new 0"), ("r.2", 1, "frame", "new 1")]


def test_an_older_attempt_that_only_begins_late_does_not_take_over(channel, watched) -> None:
    new = channel.open("w", "r", 10)
    new.send("new 0")
    with pytest.raises(BusError, match="later segment"):
        channel.open("w", "r", 9).send("old 0")
    new.send("new 1")
    assert [one.data for one in watched("w")] == ["new 0", "new 1"]


def test_a_segment_of_another_run_takes_over_when_it_begins(channel, watched) -> None:
    old = channel.open("w", "abandoned", 7)
    old.send("old")
    channel.open("w", "again", 1).send("new")
    with pytest.raises(BusError, match="later segment"):
        old.send("late")
    assert told(watched("w")) == [("again.1", 0, "frame", "new")]


def test_a_segment_of_a_replaced_run_that_first_pushes_late_does_not_take_the_channel_back(channel, watched) -> None:
    old = channel.open("w", "run_old", 1)
    new = channel.open("w", "run_new", 1)
    new.send("new 0")
    with pytest.raises(BusError, match="later segment"):
        old.send("late")
    old.completed(object())
    new.send("new 1")
    assert told(watched("w")) == [("run_new.1", 0, "frame", "new 0"), ("run_new.1", 1, "frame", "new 1")]


def test_a_segment_has_the_channel_before_its_first_frame_and_the_frames_before_it_are_still_watched(channel, watched) -> None:
    old = channel.open("w", "run_old", 1)
    old.send("before")
    new = channel.open("w", "run_new", 1)
    with pytest.raises(BusError, match="later segment"):
        old.send("late")
    assert told(watched("w")) == [("run_old.1", 0, "frame", "before")]
    new.send("after")
    assert told(watched("w")) == [("run_new.1", 0, "frame", "after")]


def test_an_older_attempt_that_is_opened_late_does_not_claim_the_channel(channel, watched) -> None:
    new = channel.open("w", "r", 10)
    channel.open("w", "r", 9)
    new.send("new 0")
    channel.open("w", "r", 10)
    new.send("new 1")
    assert [one.data for one in watched("w")] == ["new 0", "new 1"]


def test_a_claim_that_fails_is_made_up_for_by_the_first_frame(channel, server, watched) -> None:
    old = channel.open("w", "run_old", 3)
    old.send("old")
    server.connected = False
    new = channel.open("w", "run_new", 1)
    server.connected = True
    new.send("new")
    with pytest.raises(BusError, match="later segment"):
        old.send("late")
    assert told(watched("w")) == [("run_new.1", 0, "frame", "new")]


def test_a_claim_keeps_what_is_there_and_lets_it_expire(channel, client) -> None:
    channel.open("w", "r", 1)
    assert client.ttl("{jarvis:channel:w}:newest") == pytest.approx(24 * 3600, abs=5)
    assert not client.exists("{jarvis:channel:w}:frames")


def test_each_frame_is_one_command(channel, client) -> None:
    feed = channel.open("w", "r", 1)
    feed.send(0)
    sent: list[Any] = []
    run = feed._link.client.execute_command
    feed._link.client.execute_command = lambda *args, **options: (sent.append(args[0]), run(*args, **options))[1]
    feed.send(1)
    assert sent == ["EVALSHA"]


def test_a_watcher_passes_over_the_half_of_a_frame_that_a_process_died_over(channel, client, watched) -> None:
    feed = channel.open("w", "r", 1)
    feed.send("whole")
    cursor = watched("w")[0].cursor
    feed.send("x" * 3 * FRAGMENT_BYTES)
    client.xdel("{jarvis:channel:w}:frames", client.xrevrange("{jarvis:channel:w}:frames", count=1)[0][0])
    assert watched("w", cursor) == []
    channel.open("w", "r", 2).send("after")
    assert told(watched("w", cursor)) == [("r.2", 0, "frame", "after")]


# --- bounds, and gaps -------------------------------------------------------------------------------------------------------


def test_both_keys_share_a_slot_and_expire_anew_with_every_frame(channel, client) -> None:
    feed = channel.open("a{b}c", "r", 1)
    feed.send(1)
    keys = sorted(key.decode() for key in client.scan_iter())
    assert keys == ["{jarvis:channel:a{b}c}:frames", "{jarvis:channel:a{b}c}:newest"]
    for key in keys:
        client.expire(key, 5)
    feed.send(2)
    assert [client.ttl(key) for key in keys] == [pytest.approx(24 * 3600, abs=5)] * 2


def test_a_channel_holds_a_bounded_number_of_entries_and_tells_what_is_gone(client, watched) -> None:
    small = RedisChannel(client, entries=5)
    feed = small.open("w", "r", 1)
    feed.send(0)
    cursor = watched("w")[0].cursor
    for number in range(1, 20):
        feed.send(number)
    assert client.xlen("{jarvis:channel:w}:frames") == 5
    kept = [("r.1", number, "frame", number) for number in range(15, 20)]
    assert told(watched("w")) == [ChannelGap(15), *kept]
    # Its own entry is gone: how much lies between nobody knows.
    assert told(watched("w", cursor)) == [ChannelGap(None), *kept]


def test_a_channel_holds_a_bounded_number_of_bytes(client, watched) -> None:
    feed = RedisChannel(client, size=10_000).open("w", "r", 1)
    for _ in range(50):
        feed.send("x" * 998)
    assert client.xlen("{jarvis:channel:w}:frames") == 10
    assert [type(one) for one in watched("w")] == [ChannelGap] + [ChannelFrame] * 10
    feed.send("y" * 50_000)
    assert told(watched("w")) == [ChannelGap(50), ("r.1", 50, "frame", "y" * 50_000)]
    feed.send("z")
    assert told(watched("w")) == [ChannelGap(51), ("r.1", 51, "frame", "z")]


def test_a_channel_stays_within_its_bytes_whatever_another_program_wrote_there(client, watched) -> None:
    feed = RedisChannel(client, size=2_500).open("w", "r", 1)
    client.xadd("{jarvis:channel:w}:frames", {"foreign": "x"})
    for _ in range(5):
        feed.send("x" * 998)
    assert [one.sequence for one in watched("w") if isinstance(one, ChannelFrame)] == [3, 4]


def test_a_frame_whose_beginning_is_gone_counts_as_missing(client, watched) -> None:
    feed = RedisChannel(client, size=4 * FRAGMENT_BYTES).open("w", "r", 1)
    feed.send("x" * 3 * FRAGMENT_BYTES)
    feed.send("y" * FRAGMENT_BYTES)
    assert [one.missing if isinstance(one, ChannelGap) else one.sequence for one in watched("w")] == [1, 1]


def test_what_is_no_plain_data_is_refused_and_the_next_frame_says_that_one_is_missing(channel, watched) -> None:
    feed = channel.open("w", "r", 1)
    feed.send(1)
    for bad in (object(), {1, 2}, float("nan"), "\ud800", [[]] * 3 + [Frame("x", 1)]):
        with pytest.raises(BusError, match="cannot be written as JSON"):
            feed.send(bad)
    with pytest.raises(BusError, match=f"more than {FRAME_LIMIT}"):
        feed.send("x" * FRAME_LIMIT)
    feed.send(2)
    assert told(watched("w")) == [("r.1", 0, "frame", 1), ChannelGap(6), ("r.1", 7, "frame", 2)]


def test_what_another_program_wrote_is_passed_over(channel, client, watched) -> None:
    feed = channel.open("w", "r", 1)
    feed.send(1)
    broken = {"o": 9, "r": "r", "a": 1, "n": 1, "f": 0, "m": 1, "t": "frame", "p": "{no json"}
    client.xadd("{jarvis:channel:w}:frames", {"foreign": "x"})
    client.xadd("{jarvis:channel:w}:frames", broken)
    feed.send(2)
    feed.send(3)
    with structlog.testing.capture_logs() as logs:
        news = told(watched("w"))
    assert news == [("r.1", 0, "frame", 1), ChannelGap(1), ("r.1", 2, "frame", 3)]
    assert {line["event"] for line in logs} == {"not a frame, passed over: delete this entry"}


@pytest.mark.parametrize("options", [{"entries": 0}, {"size": 0}, {"keep": 0}, {"name": ""}, {"name": "a{b"}])
def test_a_channel_that_could_hold_nothing_is_refused(client, options) -> None:
    with pytest.raises(BusError):
        RedisChannel(client, **options)


@pytest.mark.parametrize("url", ["http://x", "nonsense", "redis://h:port"])
def test_a_url_that_cannot_be_read_is_refused_in_words(url) -> None:
    with pytest.raises(BusError, match="cannot read the URL of the channel"):
        open_channel(url)


# --- trouble ----------------------------------------------------------------------------------------------------------------


def test_c263_after_a_failure_of_the_server_only_the_end_is_tried_and_the_gap_is_told(channel, server, watched) -> None:
    feed = channel.open("w", "r", 1)
    feed.send("a")
    server.connected = False
    with pytest.raises(BusUnreachableError):
        feed.send("b")
    server.connected = True
    feed.send("c")
    feed.send("d")
    feed.completed(object())
    news = told(watched("w"))
    assert news == [("r.1", 0, "frame", "a"), ChannelGap(3), ("r.1", 4, "stream.completed", {"workflow_id": "w"})]


def test_a_segment_whose_first_frame_was_lost_still_takes_over_with_its_end(channel, server, watched) -> None:
    channel.open("w", "other", 3).send("old")
    feed = channel.open("w", "r", 1)
    server.connected = False
    with pytest.raises(BusUnreachableError):
        feed.send("lost")
    server.connected = True
    feed.failed(ValueError())
    assert told(watched("w")) == [ChannelGap(1), ("r.1", 1, "stream.failed", {"workflow_id": "w"})]


def test_a_segment_goes_on_after_its_server_lost_its_data(channel, client, watched) -> None:
    feed = channel.open("w", "r", 1)
    feed.send("a")
    cursor = watched("w")[0].cursor
    client.flushall()
    feed.send("b")
    assert told(watched("w")) == [ChannelGap(1), ("r.1", 1, "frame", "b")]
    assert told(watched("w", cursor)) == [ChannelGap(None), ("r.1", 1, "frame", "b")]


# --- putting together -------------------------------------------------------------------------------------------------------


def entries_of(frames: list[bytes], segment: int) -> list[FrameEntry]:
    return [
        FrameEntry("r", segment, sequence, index, len(parts), "t", part, "0-0")
        for sequence, data in enumerate(frames)
        for parts in [fragments(data)]
        for index, part in enumerate(parts)
    ]


@given(st.data())
def test_whatever_is_lost_every_frame_comes_whole_or_is_counted(data) -> None:
    sizes = data.draw(st.lists(st.sampled_from([0, 10, FRAGMENT_BYTES, 3 * FRAGMENT_BYTES]), min_size=1, max_size=8))
    frames = [json.dumps("x" * size).encode() for size in sizes] + [b'"last"']
    entries = entries_of(frames, 1)
    kept = [one for one in entries[:-1] if data.draw(st.booleans())] + entries[-1:]
    joiner = FrameJoiner("w")
    news = [one for entry in kept for one in joiner.add(entry)]
    whole = [one for one in news if isinstance(one, ChannelFrame)]
    assert [json.dumps(one.data).encode() for one in whole] == [frames[one.sequence] for one in whole]
    complete = {n for n in range(len(frames)) if all(one in kept for one in entries if one.sequence == n)}
    assert {one.sequence for one in whole} == complete
    assert sum(one.missing or 0 for one in news if isinstance(one, ChannelGap)) == len(frames) - len(complete)
    assert [one.sequence for one in whole] == sorted(complete)
