"""A run that waits for a signal gets it, once, whenever it was published: before it waited, while it lay down, or later."""

import datetime as dt
from typing import Any

import fakeredis
import pytest
from structlog.testing import capture_logs

from bus import BusUnreachableError, InMemorySignalBus, RedisSignalBus
from persistence import InMemoryPersistence, RedisPersistence
from workers.signals.positions import BusPosition
from workers.signals.subscriptions import REST, Subscriptions
from workers.sweeper import Sweeper
from workflow import (
    START_OF_RUN,
    ApprovalRequest,
    Event,
    ExecutionRequest,
    InputKind,
    ManualClock,
    ParallelEvent,
    PickleSerializer,
    StartEvent,
    StopEvent,
    WaitForEventRequest,
    Workflow,
    WorkflowEngine,
    WorkflowState,
    await_event,
    interrupt,
    memoize,
)

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


class Next(Event):
    pass


class Fork(ParallelEvent):
    pass


class Side(Event):
    topic: str


class LargePayment(WaitForEventRequest):
    def validate_input(self, kind: InputKind, payload: Any, now: dt.datetime) -> None:
        if payload["amount"] < 100:
            raise ValueError("too little")


def choosy(event: Next, state: WorkflowState) -> StopEvent:
    return StopEvent(interrupt(LargePayment("paid")))


class Desk:
    """A store, a bus, and whoever gives its signals to runs."""

    def __init__(self, store, bus) -> None:
        self.store, self.bus = store, bus
        self.clock = ManualClock(NOON)
        self.hinted: list[str] = []
        self.engine = WorkflowEngine(store, clock=self.clock)
        self.subscriptions = Subscriptions(store, lambda name, workflow_id: self.engine, bus, self)
        self.sweeper = Sweeper(store, self, every=1, now=lambda: self.clock.now().timestamp(), attend=self.subscriptions.attend)
        self.numbers = iter(range(10**6))

    def send(self, name: str, workflow_id: str, run_id: str) -> bool:
        self.hinted.append(workflow_id)
        return True

    def workflow(self, *nodes, workflow_id: str = "w") -> Workflow:
        return Workflow(
            workflow_id,
            nodes=nodes,
            persistence=self.store,
            clock=self.clock,
            signal_position=BusPosition(self.bus),
            retain_completion=True,
        )

    def publish(self, topic: str, **payload):
        return self.bus.publish(f"s{next(self.numbers)}", topic, payload)

    def resume(self, workflow: Workflow):
        return workflow.run(ExecutionRequest.resume())


@pytest.fixture(params=["memory", "fakeredis"])
def desk(request: pytest.FixtureRequest) -> Desk:
    if request.param == "memory":
        return Desk(InMemoryPersistence(), InMemorySignalBus())
    server = fakeredis.FakeServer()
    return Desk(RedisPersistence(fakeredis.FakeRedis(server=server)), RedisSignalBus(fakeredis.FakeRedis(server=server)))


def begin(event: StartEvent, state: WorkflowState) -> Next:
    return Next()


def asking(*topics: str, **options):
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent([await_event(topic, **options) for topic in topics])

    return ask


def result(desk: Desk, workflow: Workflow):
    """What the run ended with, after whoever was hinted has continued it."""
    assert desk.hinted
    desk.hinted.clear()
    return desk.resume(workflow).execution.result


def test_a_signal_that_comes_while_the_run_waits_is_heard(desk) -> None:
    workflow = desk.workflow(begin, asking("paid"))
    workflow.run()
    desk.subscriptions.hear(desk.publish("paid", order=7))
    assert result(desk, workflow) == [{"order": 7}]


def test_a_signal_that_came_after_the_request_and_before_the_wait_is_caught_up_with(desk) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        memoize("ask", lambda: desk.publish("paid", order=7).id)  # the answer is there before anybody waits
        return StopEvent(await_event("paid"))

    workflow = desk.workflow(begin, ask)
    workflow.run()
    assert desk.sweeper.sweep() == 1
    assert result(desk, workflow) == {"order": 7}


def test_a_signal_that_came_before_the_node_is_not_for_it(desk) -> None:
    desk.publish("paid", order=6)
    workflow = desk.workflow(begin, asking("paid"))
    workflow.run()
    desk.sweeper.sweep()
    desk.subscriptions.hear(desk.publish("paid", order=7))
    assert result(desk, workflow) == [{"order": 7}]


def test_from_the_start_of_the_run_an_earlier_signal_of_the_run_counts(desk) -> None:
    def first(event: StartEvent, state: WorkflowState) -> Next:
        desk.publish("paid", order=6)
        return Next()

    workflow = desk.workflow(first, asking("paid", since=START_OF_RUN))
    workflow.run()
    desk.sweeper.sweep()
    assert result(desk, workflow) == [{"order": 6}]


def test_a_run_that_nothing_has_come_for_is_left_alone_until_its_deadline(desk) -> None:
    deadline = NOON + dt.timedelta(seconds=REST - 1)
    workflow = desk.workflow(begin, asking("paid", expires_at=deadline))
    workflow.run()
    assert desk.sweeper.sweep() == 1
    assert (desk.hinted, desk.store.entry("w").due) == ([], deadline.timestamp())
    assert desk.sweeper.sweep() == 0
    desk.clock.advance(REST)
    assert desk.sweeper.sweep() == 1
    assert result(desk, workflow) == [None]


def test_a_waiting_run_is_looked_at_now_and_then_for_a_signal_whose_delivery_failed_for_good(desk) -> None:
    workflow = desk.workflow(begin, asking("paid"))
    workflow.run()
    desk.sweeper.sweep()
    desk.publish("paid", order=7)  # nobody hears it
    assert desk.sweeper.sweep() == 0
    desk.clock.advance(REST)
    assert desk.sweeper.sweep() == 1
    assert result(desk, workflow) == [{"order": 7}]


def test_a_sweeper_that_was_late_does_not_forget_what_the_run_waits_for_now(desk) -> None:
    workflow = desk.workflow(begin, asking("a", "b"))
    workflow.run()
    (seen,) = desk.store.due(desk.clock.now().timestamp())
    workflow.run(ExecutionRequest.signal("a", 1))
    desk.subscriptions.attend(seen, desk.clock.now().timestamp())
    assert desk.store.entry("w").awaits == "b"
    desk.subscriptions.hear(desk.publish("b", n=2))
    assert result(desk, workflow) == [1, {"n": 2}]


@pytest.mark.parametrize("options", [{"name": "order paid"}, {"name": "order.*"}, {"name": "paid", "since": "yesterday"}])
def test_a_wait_that_cannot_be_served_is_named_once_and_still_ends_at_its_deadline(desk, options) -> None:
    def ask(event: Next, state: WorkflowState) -> StopEvent:
        given = dict(options)
        return StopEvent(await_event(given.pop("name"), expires_at=NOON + dt.timedelta(minutes=1), **given))

    workflow = desk.workflow(begin, ask)
    other = desk.workflow(begin, asking("other"), workflow_id="x")
    workflow.run()
    other.run()
    with capture_logs() as logs:
        for _ in range(3):
            desk.sweeper.sweep()
            desk.clock.advance(61)
    assert [line["workflow_id"] for line in logs if line["log_level"] == "error"] == ["w"]
    assert workflow.run(ExecutionRequest.resume()).execution.result is None
    desk.subscriptions.hear(desk.publish("other"))
    assert "x" in desk.hinted


def test_a_run_that_cannot_be_read_keeps_nobody_from_the_signal(desk) -> None:
    for name in ("a", "b", "c"):
        desk.workflow(begin, asking("paid"), workflow_id=name).run()
        desk.sweeper.sweep()
    desk.store.write_if_unchanged("b", "__control", desk.store.get("b", "__control"), {"__control": b"\xff"})
    desk.subscriptions.hear(desk.publish("paid"))
    assert desk.hinted == ["a", "c"]


def test_a_signal_that_the_wait_refuses_is_passed_over(desk) -> None:
    workflow = desk.workflow(begin, choosy)
    workflow.run()
    for amount in (1, 2, 300):
        desk.subscriptions.hear(desk.publish("paid", amount=amount))
    assert result(desk, workflow) == {"amount": 300}


def test_a_signal_that_came_before_the_deadline_beats_it_though_it_is_found_later(desk) -> None:
    workflow = desk.workflow(begin, asking("paid", expires_at=NOON + dt.timedelta(minutes=1)))
    workflow.run()
    desk.publish("paid", order=7)
    desk.clock.advance(120)
    desk.sweeper.sweep()
    assert result(desk, workflow) == [{"order": 7}]


def test_waits_for_different_signals_get_theirs_in_whatever_order_they_come(desk) -> None:
    workflow = desk.workflow(begin, asking("a", "b"))
    workflow.run()
    desk.subscriptions.hear(desk.publish("b", n=2))
    desk.subscriptions.hear(desk.publish("a", n=1))
    desk.resume(workflow)
    desk.sweeper.sweep()
    assert result(desk, workflow) == [{"n": 1}, {"n": 2}]


def test_a_join_is_not_given_what_its_branch_has_used(desk) -> None:
    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Side(topic="one")})

    def side(event: Side, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event(event.topic))

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent([event.get_result("a"), await_event("one")])

    workflow = desk.workflow(fork, side, join)
    workflow.run()
    desk.subscriptions.hear(desk.publish("one", n=1))
    assert desk.resume(workflow).is_interrupted()
    desk.sweeper.sweep()
    desk.subscriptions.hear(desk.publish("one", n=2))
    assert result(desk, workflow) == [{"n": 1}, {"n": 2}]


def test_a_run_with_a_codec_of_its_own_is_served_like_any_other(desk) -> None:
    workflow = desk.workflow(begin, asking("paid")).reconfigure(serializer=PickleSerializer())
    desk.engine = workflow.engine()
    workflow.run()
    desk.sweeper.sweep()
    desk.subscriptions.hear(desk.publish("paid", order=7))
    assert result(desk, workflow) == [{"order": 7}]


def test_two_runs_that_wait_for_the_same_signal_both_get_it(desk) -> None:
    both = [desk.workflow(begin, asking("paid"), workflow_id=name) for name in ("a", "b")]
    for workflow in both:
        workflow.run()
    desk.subscriptions.hear(desk.publish("paid", order=7))
    assert sorted(desk.hinted) == ["a", "b"]
    assert [desk.resume(workflow).execution.result for workflow in both] == [[{"order": 7}]] * 2


def test_only_a_signal_that_matches_ends_the_wait(desk) -> None:
    workflow = desk.workflow(begin, asking("paid", match={"order": 7}))
    workflow.run()
    for order in (6, 8):
        desk.subscriptions.hear(desk.publish("paid", order=order))
    desk.subscriptions.hear(desk.publish("paid"))
    assert desk.hinted == []
    desk.subscriptions.hear(desk.publish("paid", order=7, by="card"))
    assert result(desk, workflow) == [{"order": 7, "by": "card"}]


def test_of_several_signals_the_first_counts_and_the_next_wait_gets_the_second(desk) -> None:
    workflow = desk.workflow(begin, asking("paid", "paid", "paid"))
    workflow.run()
    heard = [desk.publish("paid", n=n) for n in range(3)]
    for signal in reversed(heard):
        desk.subscriptions.hear(signal)
        desk.resume(workflow)
    assert workflow.run(ExecutionRequest.resume()).execution.result == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_signal_that_is_heard_twice_is_delivered_once(desk) -> None:
    workflow = desk.workflow(begin, asking("paid", "paid"))
    workflow.run()
    signal = desk.publish("paid", n=1)
    desk.subscriptions.hear(signal)
    desk.subscriptions.hear(signal)
    desk.resume(workflow)
    desk.subscriptions.hear(signal)
    assert desk.hinted == ["w"]


def test_when_the_hint_of_a_delivery_is_lost_the_sweeper_sends_it(desk) -> None:
    workflow = desk.workflow(begin, asking("paid"))
    workflow.run()
    desk.subscriptions.hear(desk.publish("paid", order=7))
    desk.hinted.clear()
    desk.clock.advance(6)
    desk.sweeper.sweep()
    assert result(desk, workflow) == [{"order": 7}]


def test_the_waits_of_branches_get_their_signals_one_after_the_other(desk) -> None:
    def fork(event: StartEvent, state: WorkflowState) -> Fork:
        return Fork({"a": Side(topic="one"), "b": Side(topic="two")})

    def side(event: Side, state: WorkflowState) -> StopEvent:
        return StopEvent(await_event(event.topic))

    def join(event: Fork, state: WorkflowState) -> StopEvent:
        return StopEvent(dict(event.results))

    workflow = desk.workflow(fork, side, join)
    workflow.run()
    # The second one's comes while only the first is current: nobody hears it then.
    desk.subscriptions.hear(desk.publish("two", n=2))
    desk.subscriptions.hear(desk.publish("one", n=1))
    desk.resume(workflow)
    desk.sweeper.sweep()
    assert result(desk, workflow) == {"a": {"n": 1}, "b": {"n": 2}}


def test_an_approval_is_never_given_by_a_signal(desk) -> None:
    workflow = desk.workflow(begin, asking("approval"))
    workflow.run()

    def ask(event: Next, state: WorkflowState) -> StopEvent:
        return StopEvent(interrupt(ApprovalRequest("May I?")))

    desk.workflow(begin, ask, workflow_id="approving").run()
    desk.subscriptions.hear(desk.publish("approval", approved=True))
    assert desk.hinted == ["w"]


def test_a_signal_that_nobody_waits_for_costs_one_look(desk) -> None:
    for number in range(5):
        desk.workflow(begin, asking("other"), workflow_id=f"w{number}").run()
    looks: list[str] = []

    class Counted:
        def __getattr__(self, name: str):
            looks.append(name)
            return getattr(desk.store, name)

    Subscriptions(Counted(), lambda name, workflow_id: desk.engine, desk.bus, desk).hear(desk.publish("paid"))
    assert looks == ["find"]


def test_what_did_not_match_is_not_looked_through_again(desk) -> None:
    desk.workflow(begin, asking("paid", match={"order": 7})).run()
    read: list[int] = []

    class Counted:
        def __getattr__(self, name: str):
            return getattr(desk.bus, name)

        def read(self, topics, after=None, limit=100):
            page = desk.bus.read(topics, after, limit)
            read.append(len(page))
            return page

    subscriptions = Subscriptions(desk.store, lambda name, workflow_id: desk.engine, Counted(), desk)
    for order in range(20, 70):
        subscriptions.hear(desk.publish("paid", order=order))
    assert sum(read) == 50


def test_while_the_bus_is_away_the_last_known_position_stands_in() -> None:
    class Bus:
        away = True

        def position(self) -> str:
            if self.away:
                raise BusUnreachableError("away")
            return "facts:7-0"

    bus = Bus()
    position = BusPosition(bus)
    with pytest.raises(BusUnreachableError):
        position()
    bus.away = False
    assert position() == "facts:7-0"
    bus.away = True
    assert position() == "facts:7-0"
