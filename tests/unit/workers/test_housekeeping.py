"""A mesh does not grow for ever: workers that have gone, failed sweeps and old deliveries are forgotten, and nothing else."""

import datetime as dt
from functools import cached_property
from typing import ClassVar

import pytest

from mesh.heartbeats.errors import HeartbeatStoreError
from persistence import InMemoryPersistence, UnreachableError
from workers import MeshClient, register
from workers.housekeeping import Housekeeping
from workers.schedules.watchdog import begin_sweep
from workers.signals.deliveries import KEPT_FOR, SHOWN_FOR, DeliveryLedger, DeliveryState
from workers.testing import InMemoryRuntime
from workflow import ManualClock, StartEvent, StopEvent, Workflow, WorkflowState
from workflow.records import CONTROL

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
HOUR = 3600
DAY = 24 * HOUR


def fail(event: StartEvent, state: WorkflowState) -> StopEvent:
    raise ValueError("no flour")


class House:
    def __init__(self) -> None:
        self.clock = ManualClock(NOON)
        self.runtime = InMemoryRuntime(clock=self.clock)
        self.client = MeshClient(runtime=self.runtime)
        self.ledger = DeliveryLedger(self.runtime.deliveries, now=self.clock.now)

    def look(self) -> int:
        return Housekeeping(self.runtime).look()

    def deliver(self, signal_id: str, state: DeliveryState | None = DeliveryState.SENT, *routes: str) -> None:
        for route in routes or ("mail",):
            attempt = self.ledger.begin(signal_id, route)
            if state is not None:
                self.ledger.end(attempt, state)


@pytest.fixture
def house() -> House:
    return House()


def test_a_worker_is_forgotten_a_day_after_its_last_beat_and_an_agent_never(house) -> None:
    for agent in ("worker:host:1", "worker:host:2", "research"):
        house.runtime.heartbeats.beat(agent)
    house.clock.advance(DAY)
    house.runtime.heartbeats.beat("worker:host:2")
    assert house.look() == 0
    house.clock.advance(1)
    assert house.look() == 1
    assert set(house.runtime.heartbeats.all()) == {"worker:host:2", "research"}


def test_a_failed_sweep_is_forgotten_after_a_day_and_another_failed_run_never(house, monkeypatch) -> None:
    def away(agent: str) -> None:
        raise HeartbeatStoreError("the store of beats is away")

    monkeypatch.setattr(house.runtime.heartbeats, "last_seen", away)
    begin_sweep(house.runtime, "watchdog-1", NOON)
    register("bound-to-fail", lambda workflow_id: Workflow(workflow_id, nodes=[fail], start_event=StartEvent()))
    house.client.start("bound-to-fail", "order:1")
    house.runtime.work()
    assert {entry.status for entry in house.client.runs()} == {"failed"}
    house.clock.advance(DAY)
    assert house.look() == 0
    house.clock.advance(1)
    assert house.look() == 1
    assert [entry.partition for entry in house.client.runs()] == ["order:1"]


def test_deliveries_are_forgotten_long_after_the_bus_has_forgotten_their_signal(house) -> None:
    house.deliver("old", DeliveryState.SENT, "mail", "chat")
    house.clock.advance(HOUR)
    house.deliver("new")
    house.clock.advance(KEPT_FOR - HOUR)
    assert house.look() == 1
    assert [house.ledger.state("old", route) for route in ("mail", "chat")] == [None, None]
    assert house.ledger.state("new", "mail") is DeliveryState.SENT
    house.clock.advance(HOUR)
    assert house.look() == 1
    assert house.runtime.deliveries.find() == []


def test_a_doubtful_delivery_is_shown_for_a_while_and_remembered_for_longer(house) -> None:
    house.deliver("doubtful", None)
    house.ledger.begin("doubtful", "mail")
    assert house.ledger.unknown() == ["doubtful"]
    house.clock.advance(SHOWN_FOR)
    assert (house.ledger.unknown(), house.look()) == ([], 0)
    assert house.ledger.state("doubtful", "mail") is DeliveryState.UNKNOWN
    house.clock.advance(KEPT_FOR - SHOWN_FOR)
    assert house.look() == 1


def test_a_damaged_sweep_keeps_nothing_else_from_being_forgotten(house, monkeypatch) -> None:
    def away(agent: str) -> None:
        raise HeartbeatStoreError("the store of beats is away")

    monkeypatch.setattr(house.runtime.heartbeats, "last_seen", away)
    for number in range(2):
        begin_sweep(house.runtime, f"watchdog-{number}", NOON)
    store, damaged = house.runtime.store, "watchdog-0"
    store.write_if_unchanged(damaged, CONTROL, store.get(damaged, CONTROL), {CONTROL: b"?"}, index=store.entry(damaged))
    house.deliver("old")
    house.clock.advance(KEPT_FOR)
    assert house.look() == 2
    assert [entry.partition for entry in house.client.runs()] == [damaged]


def test_entries_whose_records_a_server_has_evicted_do_not_stand_before_others(house) -> None:
    class Evicting(InMemoryPersistence):
        evicted: ClassVar[set[str]] = set()

        def load(self, partition: str) -> dict[str, bytes]:
            return {} if partition in self.evicted else super().load(partition)

        def delete_if_unchanged(self, partition: str, key: str, value: bytes, append=()) -> bool:
            self.evicted.discard(partition)
            return super().delete_if_unchanged(partition, key, value, append)

    store = Evicting()
    ledger = DeliveryLedger(store, now=house.clock.now)
    for number in range(101):
        ledger.end(ledger.begin(f"alert/{number}", "mail"), DeliveryState.SENT)
        if number < 100:
            store.evicted.add(f"alert/{number}")
    house.clock.advance(KEPT_FOR)
    assert [ledger.tidy(), ledger.tidy()] == [100, 1]
    assert store.find() == []


def test_another_route_does_not_hide_a_doubtful_one(house) -> None:
    house.deliver("doubtful", None)
    house.ledger.begin("doubtful", "mail")
    house.deliver("doubtful", DeliveryState.SENT, "chat")
    assert house.ledger.unknown() == ["doubtful"]


def test_a_store_that_is_away_is_waited_out(house) -> None:
    class Away(InMemoryRuntime):
        @cached_property
        def store(self):
            return Absent()

    class Absent(InMemoryPersistence):
        def find(self, **wanted):
            raise UnreachableError("no answer")

    housekeeping = Housekeeping(Away())
    housekeeping.look_patiently()
    with pytest.raises(UnreachableError):
        housekeeping.look()
