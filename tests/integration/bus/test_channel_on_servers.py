"""Watching runs that execute elsewhere: on real servers, with real processes."""

import asyncio
import datetime as dt
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import redis

from bus import BusUnreachableError, ChannelFrame, ChannelGap, RedisChannel, open_channel
from bus.testing import eventually
from persistence import RedisPersistence
from workflow import (
    Event,
    JsonStreamAdapter,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowState,
)
from workflow.observing import ChannelFailed, Observation

pytestmark = pytest.mark.server

HOW_TO = Path(__file__).parents[3] / "docs/how-to/stream.md"
PATIENCE = 20.0
"""Seconds without news after which a watch here gives up."""

RUN = """
import sys
from collections.abc import Generator
import redis
from bus import open_channel
from persistence import RedisPersistence
from workflow import *

class Next(Event):
    pass

def first(event: StartEvent, state: WorkflowState) -> Generator[str, None, Next]:
    yield "one"
    sys.stdin.readline()
    yield "two"
    return Next()

def second(event: Next, state: WorkflowState) -> Generator[str, None, StopEvent]:
    yield "three"
    sys.stdin.readline()
    yield "four"
    return StopEvent("done")

Workflow(
    "w", nodes=[first, second], persistence=RedisPersistence(redis.Redis.from_url(sys.argv[1])), lease_timeout=1,
    lease_renewal=False, channel=open_channel(sys.argv[1]), stream_adapter=JsonStreamAdapter,
).run(ExecutionRequest.resume() if len(sys.argv) > 2 else None)
"""
"""A run that goes on by a line on its standard input."""

WATCH = """
import sys
from bus import open_channel

for frame in open_channel(sys.argv[1]).watch("w", timeout=20):
    print(frame.stream_id[-1], frame.sequence, frame.type, frame.data, flush=True)
    if frame.type == "stream.completed":
        break
"""


@pytest.fixture
def process() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Return what starts a program with arguments; all are ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *args: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-W", "error", "-c", program, *args]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def told(news: Any) -> list[Any]:
    return [one if isinstance(one, ChannelGap) else (one.attempt, one.sequence, one.type, one.data) for one in news]


def test_a_run_in_another_process_is_watched_live(server_url, process) -> None:
    running = process(RUN, server_url)
    watch = open_channel(server_url).watch("w", timeout=PATIENCE)
    # It stands still after each of these until it is told to go on, so what is seen here is live.
    assert told(islice(watch, 2)) == [(1, 0, "run.started", {}), (1, 1, "run.item", "one")]
    go_on(running)
    assert told(islice(watch, 2)) == [(1, 2, "run.item", "two"), (1, 3, "run.item", "three")]
    late = open_channel(server_url).watch("w", timeout=PATIENCE)
    assert [one.data for one in islice(late, 4)] == [{}, "one", "two", "three"]
    go_on(running)
    rest = [
        (1, 4, "run.item", "four"),
        (1, 5, "run.ended", {"result": "done"}),
        (1, 6, "stream.completed", {"workflow_id": "w"}),
    ]
    assert told(islice(watch, 3)) == told(islice(late, 3)) == rest
    assert running.wait(PATIENCE) == 0


def test_a_segment_that_is_killed_is_followed_by_the_next_one_on_another_worker(server_url, process) -> None:
    """Three processes: one that dies, one that takes over, and one that watches both."""
    watching = process(WATCH, server_url)
    killed = process(RUN, server_url)
    assert watching.stdout
    assert [next(watching.stdout) for _ in range(2)] == ["1 0 run.started {}\n", "1 1 run.item one\n"]
    go_on(killed)
    assert [next(watching.stdout) for _ in range(2)] == ["1 2 run.item two\n", "1 3 run.item three\n"]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    store = RedisPersistence(redis.Redis.from_url(server_url))
    seen = Workflow("w", persistence=store).inspect()
    assert seen is not None
    assert seen.lease_expires_at is not None
    expires = seen.lease_expires_at
    eventually(lambda: dt.datetime.now(dt.UTC) > expires, PATIENCE)
    after = process(RUN, server_url, "resume")
    assert [next(watching.stdout) for _ in range(2)] == ["2 0 run.started {}\n", "2 1 run.item three\n"]
    go_on(after)
    assert watching.stdout.read().splitlines() == [
        "2 2 run.item four",
        "2 3 run.ended {'result': 'done'}",
        "2 4 stream.completed {'workflow_id': 'w'}",
    ]
    assert watching.wait(PATIENCE) == 0


def test_a_frame_of_five_megabytes_arrives_exactly(server_url) -> None:
    channel = open_channel(server_url)
    text = os.urandom(2_500_000).hex()
    feed = channel.open("w", "r", 1)
    feed.send({"text": text})
    feed.send("after")
    big, after = islice(channel.watch("w", timeout=PATIENCE), 2)
    assert big.data == {"text": text}
    assert (after.sequence, after.data) == (1, "after")


def test_many_watchers_on_threads_and_on_a_loop_all_see_everything(server_url) -> None:
    """More than a pool of the client library has connections."""
    channel = open_channel(server_url)
    seen: list[list[Any]] = []

    def watch() -> None:
        seen.append([one.data for one in islice(channel.watch("w", timeout=PATIENCE), 30)])

    async def watch_on_loop() -> None:
        stream = channel.aio.watch("w", timeout=PATIENCE)
        seen.append([(await anext(stream)).data for _ in range(30)])
        await stream.aclose()

    async def watch_all_on_loop() -> None:
        await asyncio.gather(*(watch_on_loop() for _ in range(40)))

    threads = [threading.Thread(target=watch) for _ in range(120)]
    threads.append(threading.Thread(target=lambda: asyncio.run(watch_all_on_loop())))
    for thread in threads:
        thread.start()
    feed = channel.open("w", "r", 1)
    for number in range(30):
        feed.send(number)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert seen == [list(range(30))] * 160


def test_a_slow_watcher_is_told_what_it_missed_and_slows_nobody(server_url) -> None:
    channel = RedisChannel(redis.Redis.from_url(server_url), entries=100)
    feed = channel.open("w", "r", 1)
    feed.send(0)
    slow = channel.watch("w", timeout=PATIENCE)
    assert next(slow).data == 0
    for number in range(1, 1000):
        feed.send(number)
    assert next(slow) == ChannelGap(899)
    assert [one.data for one in islice(slow, 100)] == list(range(900, 1000))


def test_what_is_pushed_expires(server_url) -> None:
    channel = RedisChannel(redis.Redis.from_url(server_url), keep=1)
    channel.open("w", "r", 1).send(1)
    client = redis.Redis.from_url(server_url)
    eventually(lambda: client.dbsize() == 0, PATIENCE)
    assert list(channel.watch("w", timeout=0.01)) == []


# --- the web page of docs/how-to/stream.md ----------------------------------------------------------------------------------


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the one it replaces
        pass


@pytest.fixture
def page(redis_url, monkeypatch) -> Iterator[str]:
    """Return the address of a web server that serves the program of the page."""
    monkeypatch.setenv("CHANNEL_URL", redis_url)
    program: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", HOW_TO.read_text(), re.DOTALL)[1], program)
    with make_server("127.0.0.1", 0, program["app"], handler_class=Quiet) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/runs"
        served.shutdown()
        thread.join(PATIENCE)


def test_the_page_of_the_how_to_shows_a_run_and_goes_on_after_the_last_event_that_arrived(page, redis_url) -> None:
    feed = open_channel(redis_url).open("library", "r", 1)
    feed.send({"text": "a\nb"})
    feed.send("b")
    feed.completed(None)
    with urlopen(f"{page}/library", timeout=PATIENCE) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        events = answer.read().decode().split("\n\n")[:-1]
    assert [re.sub(r"id: \d+-\d+", "id: …", event) for event in events] == [
        'event: frame\nid: …\ndata: {"text": "a\\nb"}',
        'event: frame\nid: …\ndata: "b"',
        'event: stream.completed\nid: …\ndata: {"workflow_id": "library"}',
    ]
    last = re.findall(r"id: (.*)", events[0])[0]
    with urlopen(Request(f"{page}/library", headers={"Last-Event-ID": last}), timeout=PATIENCE) as answer:
        assert answer.read().decode().split("\n\n")[:-1] == events[1:]


# --- servers in trouble -----------------------------------------------------------------------------------------------------


def streaming(trouble: Callable[[], object]) -> Callable[..., Any]:
    """A node that gets into trouble after its first item."""

    def work(event: StartEvent, state: WorkflowState) -> Generator[Any, None, Event]:
        yield "before"
        trouble()
        yield from range(300)
        return StopEvent("done")

    return work


def run_beside(channel: RedisChannel, trouble: Callable[[], object]) -> tuple[WorkflowState, list[str], float]:
    """The state, what failed, and how long it took."""
    told: list[Observation] = []
    listeners = [told.append]
    definition = Workflow(
        "w", nodes=[streaming(trouble)], stream_adapter=JsonStreamAdapter, channel=channel, listeners=listeners
    )
    began = time.monotonic()
    state = definition.run()
    return state, [str(one.error) for one in told if isinstance(one, ChannelFailed)], time.monotonic() - began


def test_a_run_whose_channel_server_is_killed_goes_on_and_says_so_once(server, caplog) -> None:
    channel = open_channel(server.url)
    with caplog.at_level(logging.WARNING):
        state, failures, _ = run_beside(channel, lambda: (seen_before(channel), server.kill()))
    assert state.execution.result == "done"
    assert len(failures) == 1
    assert "no answer" in failures[0]
    assert len([line for line in caplog.records if line.name.startswith("workflow")]) == 1
    server.start()
    assert told(channel.watch("w", timeout=0.2)) == [(1, 0, "run.started", {}), (1, 1, "run.item", "before")]


def test_a_run_whose_channel_server_comes_back_tells_its_end_and_the_gap(server) -> None:
    channel = open_channel(server.url)

    feed_failed = threading.Event()

    def listen(observation: Observation) -> None:
        if isinstance(observation, ChannelFailed):
            feed_failed.set()

    def work(event: StartEvent, state: WorkflowState) -> Generator[Any, None, Event]:
        yield "before"
        seen_before(channel)
        server.kill()
        yield "lost"
        assert feed_failed.wait(PATIENCE)
        server.start()
        yield "not tried"
        return StopEvent("done")

    Workflow("w", nodes=[work], stream_adapter=JsonStreamAdapter, channel=channel, listeners=[listen]).run()
    assert told(channel.watch("w", timeout=0.2)) == [
        (1, 0, "run.started", {}),
        (1, 1, "run.item", "before"),
        ChannelGap(3),
        (1, 5, "stream.completed", {"workflow_id": "w"}),
    ]


def test_a_run_whose_channel_server_hangs_is_held_up_for_seconds_at_the_most(server) -> None:
    channel = open_channel(server.url)
    with redis.Redis.from_url(server.url) as client:
        pid = client.info("server")["process_id"]
    try:
        state, failures, seconds = run_beside(channel, lambda: (seen_before(channel), os.kill(pid, signal.SIGSTOP)))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert state.execution.result == "done"
    assert len(failures) == 1
    assert seconds < 10


def test_a_run_whose_channel_server_hangs_from_the_start_is_held_up_for_seconds_and_says_so_once(server) -> None:
    channel = open_channel(server.url)
    server.freeze()
    try:
        state, failures, seconds = run_beside(channel, lambda: None)
    finally:
        server.wake()
    assert state.execution.result == "done"
    assert len(failures) == 1
    assert seconds < 10


def test_a_watcher_lives_through_a_restart_of_its_server(server) -> None:
    channel = open_channel(server.url)
    channel.open("w", "r", 1).send("before")
    watch = channel.watch("w", timeout=PATIENCE)
    assert next(watch).data == "before"

    def restart() -> None:
        server.kill()
        server.start()
        channel.open("w", "r", 2).send("after")

    restarting = threading.Thread(target=restart)
    restarting.start()
    assert told(islice(watch, 1)) == [(2, 0, "frame", "after")]
    restarting.join(PATIENCE)


def test_a_watcher_of_a_server_that_stays_away_is_told_so(server) -> None:
    channel = open_channel(server.url)
    server.kill()
    with pytest.raises(BusUnreachableError):
        next(channel.watch("w"))


def seen_before(channel: RedisChannel) -> None:
    """Return when the frame of the first item has arrived."""
    for frame in channel.watch("w", timeout=PATIENCE):
        if isinstance(frame, ChannelFrame) and frame.data == "before":
            return
    pytest.fail("the first item never arrived")
