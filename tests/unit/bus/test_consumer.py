"""The consumer's loop: stopping, threads and event loops, batches that take too long, trouble that passes."""

import asyncio
import threading

import fakeredis
import pytest
import structlog

from bus import Backoff, BusError, BusUnreachableError, GroupInfo, InMemorySignalBus, RedisSignalBus, Signal, SignalConsumer
from bus.testing import eventually


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("bus.consumer.WAIT", 0.05)
    monkeypatch.setattr("bus.patience.RECONNECT_DELAY", 0.02)


@pytest.fixture
def bus():
    return InMemorySignalBus()


@pytest.fixture
def running():
    """Start consumers in threads; each is stopped and joined at the end."""
    started = []

    def start(consumer):
        thread = threading.Thread(target=consumer.run)
        thread.start()
        started.append((consumer, thread))
        return thread

    yield start
    for consumer, thread in started:
        consumer.stop()
        thread.join(20)
        assert not thread.is_alive()


def facts(count):
    return [Signal(str(number), "fact", {}) for number in range(count)]


def test_a_running_consumer_handles_what_comes_until_it_is_stopped(bus, running):
    seen = []
    consumer = SignalConsumer(bus, "g", lambda signal: seen.append(signal.id))
    thread = running(consumer)
    for number in range(5):
        bus.publish(str(number), "fact", {})
        eventually(lambda number=number: len(seen) == number + 1)
    consumer.stop()
    thread.join(5)
    bus.publish("late", "fact", {})
    assert seen == ["0", "1", "2", "3", "4"]


def test_stopping_finishes_the_handler_in_hand_and_gives_back_the_rest(bus, running):
    entered, go_on, seen = threading.Event(), threading.Event(), []

    def handler(signal):
        entered.set()
        assert go_on.wait(10)
        seen.append(signal.id)

    bus.publish_many(facts(5))
    consumer = SignalConsumer(bus, "g", handler)
    thread = running(consumer)
    assert entered.wait(10)
    consumer.stop()
    go_on.set()
    thread.join(10)
    assert seen == ["0"]
    assert bus.groups()[0].pending == 0
    assert SignalConsumer(bus, "g", lambda signal: seen.append(signal.id), max_deliveries=1).drain() == 4
    assert sorted(seen) == ["0", "1", "2", "3", "4"]


def test_two_consumers_of_a_group_never_get_the_same_signal(bus, running):
    seen = []
    for _ in range(2):
        running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id)))
    bus.publish_many(facts(200))
    eventually(lambda: len(seen) >= 200)
    assert len(seen) == len(set(seen)) == 200


def test_a_batch_that_takes_too_long_is_given_back_before_others_take_it(bus):
    seen = []

    def slow(signal):
        threading.Event().wait(0.15)
        seen.append(signal.id)

    bus.publish_many(facts(4))
    assert SignalConsumer(bus, "g", slow, takeover_after=0.2, max_deliveries=1).drain() == 4
    assert seen == ["0", "1", "2", "3"]
    assert bus.dead_letters("g") == []


def test_a_stopped_consumer_stays_stopped(bus):
    bus.publish_many(facts(1))
    consumer = SignalConsumer(bus, "g", print)
    consumer.stop()
    consumer.run()
    assert consumer.drain() == 0


@pytest.mark.parametrize("kind", ["plain", "async", "async object"])
def test_plain_and_async_handlers_run_in_a_thread_and_on_a_loop(bus, kind):
    seen = []

    async def on_loop(signal):
        await asyncio.sleep(0)
        seen.append(signal.id)

    class AsyncHandler:
        async def __call__(self, signal):
            await on_loop(signal)

    handler = {"plain": lambda signal: seen.append(signal.id), "async": on_loop, "async object": AsyncHandler()}[kind]
    bus.publish_many(facts(3))
    assert SignalConsumer(bus, "blocking", handler).drain() == 3
    assert asyncio.run(SignalConsumer(bus, "loop", handler).aio.drain()) == 3
    assert seen == ["0", "1", "2"] * 2


def test_an_async_handler_that_fails_is_retried_like_any_other(bus):
    async def failing(_):
        raise ValueError("no")

    bus.publish_many(facts(1))
    assert asyncio.run(SignalConsumer(bus, "g", failing, max_deliveries=2, backoff=Backoff(first=0)).aio.drain()) == 0
    assert bus.dead_letters("g")[0].attempts == 2


def test_running_on_a_loop_leaves_the_loop_free_and_stops_in_time(bus):
    async def main():
        seen = asyncio.Event()

        async def handler(_):
            seen.set()

        consumer = SignalConsumer(bus, "g", handler)
        task = asyncio.create_task(consumer.aio.run())
        bus.publish_many(facts(1))
        await asyncio.wait_for(seen.wait(), 10)
        consumer.stop()
        await asyncio.wait_for(task, 10)

    asyncio.run(main())


def test_a_blocking_call_on_a_loop_is_refused_and_names_the_other_form(bus):
    async def main():
        SignalConsumer(bus, "g", print).drain()

    with pytest.raises(BusError, match=r"\.aio"):
        asyncio.run(main())


def test_trouble_with_the_server_is_waited_out_and_said_once(running):
    server, seen = fakeredis.FakeServer(), []
    bus = RedisSignalBus(fakeredis.FakeRedis(server=server))
    with structlog.testing.capture_logs() as logs:
        running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id)))
        bus.publish("before", "fact", {})
        eventually(lambda: seen == ["before"])
        server.connected = False
        eventually(lambda: any("trying again" in entry["event"] for entry in logs))
        server.connected = True
        eventually(lambda: any("is over" in entry["event"] for entry in logs))
        bus.publish("after", "fact", {})
        eventually(lambda: seen == ["before", "after"])
    assert [entry["log_level"] for entry in logs if "trouble" in entry["event"]] == ["warning", "info"]


class DeafBus(InMemorySignalBus):
    """A bus that does not hear the next acknowledgements."""

    deaf = 0

    def join(self, *args, **options):
        reader = super().join(*args, **options)
        heard = reader.acknowledge

        def acknowledge(deliveries):
            if self.deaf:
                self.deaf -= 1
                raise BusUnreachableError("deaf")
            heard(deliveries)

        reader.acknowledge = acknowledge
        return reader


def test_what_was_handled_while_the_server_was_away_is_not_handled_again(running):
    bus, seen = DeafBus(), []
    bus.deaf = 5
    bus.publish_many(facts(2))
    with structlog.testing.capture_logs() as logs:
        running(SignalConsumer(bus, "g", lambda signal: seen.append(signal.id)))
        eventually(lambda: seen == ["0", "1"] and bus.groups()[0].pending == 0)
    assert bus.deaf == 0
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]


def test_draining_does_not_wait_out_trouble():
    server = fakeredis.FakeServer()
    bus = RedisSignalBus(fakeredis.FakeRedis(server=server))
    server.connected = False
    with pytest.raises(BusUnreachableError, match="no answer"):
        SignalConsumer(bus, "g", print).drain()


def test_stopping_amid_trouble_ends_without_an_error():
    server = fakeredis.FakeServer()
    server.connected = False
    consumer = SignalConsumer(RedisSignalBus(fakeredis.FakeRedis(server=server)), "g", print)
    with structlog.testing.capture_logs() as logs:
        thread = threading.Thread(target=consumer.run)
        thread.start()
        eventually(lambda: bool(logs))
        consumer.stop()
        thread.join(10)
    assert not thread.is_alive()
    assert "stopped amid bus trouble" in logs[-1]["event"]


def test_several_async_handlers_run_at_a_time_on_one_loop(bus):
    async def main():
        together = asyncio.Barrier(4)

        async def handler(_):
            # Passed only when four are in hand at the same time.
            await asyncio.wait_for(together.wait(), 10)

        return await SignalConsumer(bus, "g", handler, concurrency=4).aio.drain()

    bus.publish_many(facts(8))
    assert asyncio.run(main()) == 8


@pytest.mark.parametrize("side", ["threads", "loop"])
def test_an_error_of_the_bus_in_one_lane_is_raised_after_the_others_have_ended(bus, side):
    class Deaf(InMemorySignalBus):
        def join(self, *args, **options):
            reader = super().join(*args, **options)
            heard = reader.acknowledge

            def acknowledge(deliveries):
                if deliveries[0].signal.id == "0":
                    raise BusUnreachableError("deaf")
                heard(deliveries)

            reader.acknowledge = acknowledge
            return reader

    deaf, seen = Deaf(), []
    deaf.publish_many(facts(4))
    consumer = SignalConsumer(deaf, "g", lambda signal: seen.append(signal.id), concurrency=4)
    with pytest.raises(BusUnreachableError, match="deaf"):
        consumer.drain() if side == "threads" else asyncio.run(consumer.aio.drain())
    assert sorted(seen) == ["0", "1", "2", "3"]
    assert deaf.groups()[0].pending == 1


def test_stopping_gives_back_what_no_lane_has_begun(bus, running):
    entered, go_on, seen = threading.Barrier(3), threading.Event(), []

    def handler(signal):
        if not go_on.is_set():
            entered.wait(10)
        assert go_on.wait(10)
        seen.append(signal.id)

    bus.publish_many(facts(10))
    consumer = SignalConsumer(bus, "g", handler, concurrency=2)
    thread = running(consumer)
    entered.wait(10)
    consumer.stop()
    go_on.set()
    thread.join(10)
    assert sorted(seen) == ["0", "1"]
    assert bus.groups()[0] == GroupInfo("g", unread=0, pending=0, retrying=8, dead=0)


def test_a_consumer_without_a_slot_for_a_handler_is_refused(bus):
    with pytest.raises(BusError, match="concurrency must be 1 or more"):
        SignalConsumer(bus, "g", print, concurrency=0)
