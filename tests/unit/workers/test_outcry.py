"""A server that takes no writes is said straight away, once, with those who were silent by then; and two ledgers act as one."""

import datetime as dt
from typing import Any

import pytest

from bus import Signal
from mesh.watchdog import STALE_TOPIC
from persistence import InMemoryPersistence, PersistenceError, UnreachableError
from workers import Settings
from workers.settings import AlertSettings, WatchdogSettings
from workers.signals.alerts import AWAY_TOPIC, REFUSING_TOPIC, AlertDelivery, DeliveryFailedError, alert_text
from workers.signals.deliveries import DeliveryLedger, DeliveryState
from workers.signals.outcry import Outcry
from workers.signals.two_ledgers import TwoLedgers
from workers.testing import InMemoryRuntime
from workflow import ManualClock

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)
SENT, FAILED, UNKNOWN = DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.UNKNOWN


class Refusing(InMemoryPersistence):
    """A store that answers, and while it has a ``trouble`` takes no write."""

    trouble: Exception | None = None
    away = False

    def get(self, partition: str, key: str) -> bytes | None:
        if self.away:
            raise UnreachableError("no answer")
        return super().get(partition, key)

    def initialize_if_absent(self, *args: Any, **options: Any) -> bool:
        partition, key = args[0], args[1]
        if self.trouble is not None and self.get(partition, key) is None:
            raise self.trouble
        return super().initialize_if_absent(*args, **options)

    def write_if_unchanged(self, *args: Any, **options: Any) -> bool:
        if self.trouble is not None:
            raise self.trouble
        return super().write_if_unchanged(*args, **options)


# --- the outcry ---------------------------------------------------------------------------------------------------------------


class House:
    """A mesh with a server that can be full, and the people whom it tells."""

    def __init__(self, **alerts: Any) -> None:
        self.clock = ManualClock(NOON)
        watchdog = WatchdogSettings(agents=("bakery", "mill"), stale_after_seconds=300)
        self.runtime = InMemoryRuntime(Settings.load(watchdog=watchdog, alerts=AlertSettings(**alerts)), clock=self.clock)
        self.store = self.runtime.__dict__["deliveries"] = Refusing()
        self.told: list[Signal] = []
        self.deaf: set[str] = set()
        self.outcry = Outcry(self.runtime, self.hear, self.hear)
        self.runtime.heartbeats.beat("mill", NOON - dt.timedelta(seconds=200))
        self.runtime.heartbeats.beat("bakery", NOON - dt.timedelta(seconds=400))

    def hear(self, signal: Signal) -> None:
        if signal.id in self.deaf:
            raise DeliveryFailedError("not now")
        self.told.append(signal)

    def ids(self) -> list[str]:
        told, self.told = [signal.id for signal in self.told], []
        return told


SERVER = f"{REFUSING_TOPIC}/{NOON.isoformat()}"
BAKERY = "watchdog/bakery/20261130T115320.000000Z"


def test_a_server_that_takes_writes_is_no_news() -> None:
    house = House()
    assert house.outcry.look()
    assert house.ids() == []


def test_agents_are_judged_by_the_last_moment_at_which_a_write_was_taken() -> None:
    house = House()
    house.outcry.look()
    house.store.trouble = PersistenceError("out of memory")
    for _ in range(3):
        house.clock.advance(3600)  # nobody could beat meanwhile
        assert not house.outcry.look()
        assert house.ids() == [SERVER, BAKERY]  # the same ids each time: the ledger sees to it that people hear them once
    house.store.trouble = None
    assert house.outcry.look()
    house.store.trouble = PersistenceError("out of memory")
    house.outcry.look()
    assert house.ids()[0] != SERVER


def test_a_server_at_the_edge_of_full_is_told_of_once_in_an_hour() -> None:
    house = House(topics=("workflow.failed",))
    told = set()
    for _ in range(59):
        house.store.trouble = None
        house.outcry.look()
        house.store.trouble = PersistenceError("out of memory")
        house.outcry.look()
        told |= set(house.ids())
        house.clock.advance(60)
    assert told == {SERVER}


def test_a_refusal_that_lasts_is_told_of_though_another_one_was_just_told() -> None:
    house = House(topics=("workflow.failed",))
    for minutes, trouble in ((0, None), (1, "full"), (1, None), (20, "full")):
        house.clock.advance(60 * minutes)
        house.store.trouble = PersistenceError(trouble) if trouble else None
        house.outcry.look()
    assert house.ids() == [SERVER]
    house.clock.advance(3600)
    house.outcry.look()
    [late] = house.ids()
    assert late == f"{REFUSING_TOPIC}/{(NOON + dt.timedelta(minutes=2)).isoformat()}"


def test_a_server_that_is_away_for_as_long_as_an_agent_may_be_silent_is_told_of_under_one_id() -> None:
    house = House()
    house.outcry.look_patiently()
    house.store.away = True
    house.clock.advance(299)
    house.outcry.look_patiently()
    assert house.ids() == []
    for _ in range(2):
        house.clock.advance(60)
        Outcry(house.runtime, house.hear, house.hear).look_patiently()  # also a process that was started meanwhile
        assert house.ids() == [f"{AWAY_TOPIC}/{NOON.isoformat()}"]
    house.store.away = False
    house.outcry.look_patiently()
    house.store.away = True
    house.clock.advance(301)
    house.outcry.look_patiently()
    (alert,) = house.told
    assert alert.id != f"{AWAY_TOPIC}/{NOON.isoformat()}"
    assert alert_text(alert)[0] == "The server does not answer"


def test_a_server_that_never_answered_is_away_from_the_first_look_on() -> None:
    house = House()
    house.store.away = True
    for seconds in (0, 299):
        house.clock.advance(seconds)
        house.outcry.look_patiently()
        assert house.ids() == []
    house.clock.advance(1)
    house.outcry.look_patiently()
    assert house.ids() == [f"{AWAY_TOPIC}/{NOON.isoformat()}"]


def test_what_is_said_of_a_server_that_is_away_reaches_people_once_and_without_it() -> None:
    house = House(urls=("json://localhost:1/hook",))
    sent: list[str] = []
    deliver = AlertDelivery(DeliveryLedger(house.runtime.deliveries_here), ["hook"], lambda *alert: not sent.append(alert[1]))
    house.store.away = True
    for _ in range(4):
        Outcry(house.runtime, house.hear, deliver).look_patiently()
        house.clock.advance(301)
    assert (sent, house.told) == (["The server does not answer"], [])


def test_what_people_did_not_take_keeps_the_rest_from_nobody() -> None:
    house = House()
    house.outcry.look()
    house.store.trouble, house.deaf = PersistenceError("out of memory"), {SERVER}
    house.outcry.look()
    assert house.ids() == [BAKERY]
    house.deaf = set()
    house.outcry.look()
    assert house.ids() == [SERVER, BAKERY]


def test_a_server_that_never_took_a_write_is_news_too_and_agents_are_none_where_the_settings_say_so() -> None:
    house = House(topics=("workflow.failed",))
    house.store.trouble = PersistenceError("out of memory")
    house.outcry.look()
    (alert,) = house.told
    title, body = alert_text(alert)
    assert title == "The server takes no writes"
    assert body.startswith("out of memory\nIt last took one at never.")
    assert STALE_TOPIC not in {signal.topic for signal in house.told}


def test_a_server_that_does_not_answer_is_not_called_full() -> None:
    house = House()
    house.outcry.look()
    house.store.trouble = UnreachableError("no answer")
    with pytest.raises(UnreachableError):
        house.outcry.look()
    house.outcry.look_patiently()
    assert house.ids() == []


# --- two ledgers --------------------------------------------------------------------------------------------------------------


class Ledgers:
    def __init__(self) -> None:
        self.shared, self.here = Refusing(), Refusing()
        self.both = TwoLedgers(DeliveryLedger(self.shared), DeliveryLedger(self.here))

    def deliver(self, state: DeliveryState | None = SENT) -> bool:
        attempt = self.both.begin("alert", "mail")
        if attempt is not None and state is not None:
            self.both.end(attempt, state)
        return attempt is not None

    def states(self) -> tuple[DeliveryState | None, DeliveryState | None]:
        stores = (self.shared, self.here)
        return DeliveryLedger(stores[0]).state("alert", "mail"), DeliveryLedger(stores[1]).state("alert", "mail")


def test_what_the_server_has_forgotten_is_known_here_and_told_to_it_again() -> None:
    ledgers = Ledgers()
    assert ledgers.deliver()
    ledgers.shared.delete_if_unchanged("alert", "mail", ledgers.shared.get("alert", "mail") or b"")
    assert not ledgers.deliver()
    assert ledgers.states() == (SENT, SENT)


def test_while_the_server_is_full_the_record_here_is_enough_and_stands_afterwards() -> None:
    ledgers = Ledgers()
    ledgers.shared.trouble = PersistenceError("out of memory")
    assert ledgers.deliver()
    assert not ledgers.deliver()
    assert ledgers.states() == (None, SENT)
    ledgers.shared.trouble = None
    assert not ledgers.deliver()
    assert ledgers.states() == (SENT, SENT)


def test_what_failed_is_tried_again_also_while_the_server_is_full() -> None:
    ledgers = Ledgers()
    assert ledgers.deliver(FAILED)
    ledgers.shared.trouble = PersistenceError("out of memory")
    assert ledgers.deliver()
    assert ledgers.states() == (FAILED, SENT)


def test_what_somebody_may_be_sending_is_left_to_him_while_the_server_is_full() -> None:
    ledgers = Ledgers()
    ledgers.deliver(None)
    ledgers.shared.trouble = PersistenceError("out of memory")
    with pytest.raises(PersistenceError, match="out of memory"):
        ledgers.deliver()


def test_a_server_that_fills_up_while_an_alert_is_sent_does_not_have_it_sent_again() -> None:
    ledgers = Ledgers()
    attempt = ledgers.both.begin("alert", "mail")
    assert attempt is not None
    ledgers.shared.trouble = PersistenceError("out of memory")
    with pytest.raises(PersistenceError, match="out of memory"):
        ledgers.both.end(attempt, SENT)
    assert not ledgers.deliver()


def test_without_a_disk_alerts_go_out_all_the_same() -> None:
    ledgers = Ledgers()
    ledgers.here.trouble = PersistenceError("read-only")
    assert ledgers.deliver()
    assert not ledgers.deliver()
    assert ledgers.states() == (SENT, None)


def test_what_is_unknown_here_is_unknown_to_all() -> None:
    ledgers = Ledgers()
    DeliveryLedger(ledgers.here).begin("alert", "mail")
    assert not ledgers.deliver()
    assert ledgers.states() == (UNKNOWN, UNKNOWN)
