"""An alert is sent once; one whose sender died in the middle neither repeats nor vanishes without a word."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from bus import Signal
from persistence import InMemoryPersistence, UnreachableError
from workers.signals.alerts import AlertDelivery, DeliveryFailedError
from workers.signals.deliveries import SHOWN_FOR, DeliveryLedger, DeliveryState

SIGNAL = Signal("watchdog/bakery", "agent.heartbeat.stale", {"agent": "bakery", "checked_at": "now"})
MAIL, HOOK = "mailto://mara", "json://hook"
WRITES = ("initialize_if_absent", "write_if_unchanged")


class DiedError(BaseException):
    """The process is gone: nothing of it runs any more."""


class Shore:
    """A store that outlives processes, and the people whom alerts reach."""

    def __init__(self) -> None:
        self.store = InMemoryPersistence()
        self.received: list[str] = []
        self.refusing = False
        self.moment = dt.datetime(2026, 11, 30, 7, tzinfo=dt.UTC)

    def process(self, *addresses: str, store: Any = None, resend: bool = False, send: Any = None) -> AlertDelivery:
        return AlertDelivery(self.ledger(store, resend=resend), addresses or (HOOK,), send or self.send)

    def ledger(self, store: Any = None, *, resend: bool = False) -> DeliveryLedger:
        return DeliveryLedger(store or self.store, resend=resend, now=lambda: self.moment)

    def send(self, address: str, title: str, body: str) -> bool:
        if not self.refusing:
            self.received.append(address)
        return not self.refusing

    def states(self) -> list[str]:
        return sorted(held.split()[0].decode() for held in self.store.load(SIGNAL.id).values())


class Troubled:
    """The store as a process sees it that meets ``trouble`` at its n-th write, before or after it has taken effect."""

    def __init__(self, store: InMemoryPersistence, trouble: BaseException, at: int, *, effect: bool) -> None:
        self._store = store
        self._trouble = trouble
        self._left = at
        self._effect = effect

    def __getattr__(self, name: str) -> Any:
        operation: Callable[..., Any] = getattr(self._store, name)
        return self._write(operation) if name in WRITES else operation

    def _write(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def write(*args: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left:
                return operation(*args, **options)
            if self._effect:
                operation(*args, **options)
            raise self._trouble

        return write


@pytest.fixture
def shore() -> Shore:
    """A store without deliveries."""
    return Shore()


def dying_send(shore: Shore, *, out: bool) -> Any:
    def send(address: str, title: str, body: str) -> bool:
        if out:
            shore.send(address, title, body)
        raise DiedError

    return send


CRASHES = {
    "before the first record": lambda shore: {"store": Troubled(shore.store, DiedError(), 1, effect=False)},
    "after the first record": lambda shore: {"store": Troubled(shore.store, DiedError(), 1, effect=True)},
    "while sending": lambda shore: {"send": dying_send(shore, out=False)},
    "after sending": lambda shore: {"send": dying_send(shore, out=True)},
    "before the second record": lambda shore: {"store": Troubled(shore.store, DiedError(), 2, effect=False)},
    "after the second record": lambda shore: {"store": Troubled(shore.store, DiedError(), 2, effect=True)},
}
IN_DOUBT = {"after the first record", "while sending", "after sending", "before the second record"}


@pytest.mark.parametrize("crash", CRASHES)
def test_a_sender_that_dies_never_repeats_an_alert_and_what_is_not_known_is_said(
    shore: Shore, crash: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DiedError):
        shore.process(**CRASHES[crash](shore))(SIGNAL)

    for _ in range(3):
        shore.process()(SIGNAL)

    said = capsys.readouterr().out
    assert len(shore.received) <= 1
    assert (shore.ledger().unknown() == [SIGNAL.id]) is (crash in IN_DOUBT)
    assert said.count("nobody knows whether an alert arrived") == (crash in IN_DOUBT)
    assert (SIGNAL.id in said) or crash not in IN_DOUBT
    assert shore.states() == (["unknown"] if crash in IN_DOUBT else ["sent"])
    assert shore.received == [HOOK] or crash in IN_DOUBT


@pytest.mark.parametrize("crash", CRASHES)
def test_where_repeating_is_preferred_every_alert_arrives(shore: Shore, crash: str) -> None:
    with pytest.raises(DiedError):
        shore.process(**CRASHES[crash](shore))(SIGNAL)

    for _ in range(3):
        shore.process(resend=True)(SIGNAL)

    assert 1 <= len(shore.received) <= 2
    assert shore.states() == ["sent"]
    assert shore.ledger().unknown() == []


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("at", [1, 2])
def test_a_process_that_outlives_trouble_with_the_store_knows_what_it_has_sent(shore: Shore, at: int, effect: bool) -> None:
    process = shore.process(store=Troubled(shore.store, UnreachableError("away"), at, effect=effect))
    with pytest.raises(UnreachableError):
        process(SIGNAL)

    process(SIGNAL)

    assert shore.received == [HOOK]
    assert shore.states() == ["sent"]
    assert shore.ledger().unknown() == []


def test_what_one_address_refuses_is_sent_there_again_and_to_no_other(shore: Shore) -> None:
    process = shore.process(MAIL, HOOK, send=lambda address, *text: address == MAIL and shore.send(address, *text))
    with pytest.raises(DeliveryFailedError, match="1 of 2"):
        process(SIGNAL)
    assert shore.states() == ["failed", "sent"]

    shore.process(MAIL, HOOK)(SIGNAL)

    assert shore.received == [MAIL, HOOK]
    assert shore.states() == ["sent", "sent"]


def test_a_sender_that_raises_is_tried_again(shore: Shore) -> None:
    def broken(*_: Any) -> bool:
        raise ValueError("no such address")

    with pytest.raises(ValueError, match="no such"):
        shore.process(send=broken)(SIGNAL)
    shore.process()(SIGNAL)

    assert shore.received == [HOOK]


def test_the_outcome_of_a_slow_sender_counts_after_it_was_given_up(shore: Shore) -> None:
    def slow(*text: str) -> bool:
        shore.process()(SIGNAL)  # another one takes over meanwhile
        assert shore.ledger().unknown() == [SIGNAL.id]
        return shore.send(*text)

    shore.process(send=slow)(SIGNAL)

    assert shore.received == [HOOK]
    assert shore.states() == ["sent"]
    assert shore.ledger().unknown() == []


def test_one_delivery_that_becomes_known_does_not_hide_another(shore: Shore) -> None:
    with pytest.raises(DiedError):
        shore.process(MAIL, send=dying_send(shore, out=False))(SIGNAL)
    with pytest.raises(DiedError):
        shore.process(HOOK, send=dying_send(shore, out=False))(SIGNAL)
    shore.process(MAIL, HOOK)(SIGNAL)

    shore.process(MAIL, resend=True)(SIGNAL)

    assert shore.states() == ["sent", "unknown"]
    assert shore.ledger().unknown() == [SIGNAL.id]


def test_what_is_not_known_is_shown_for_a_while(shore: Shore) -> None:
    with pytest.raises(DiedError):
        shore.process(send=dying_send(shore, out=False))(SIGNAL)
    shore.process()(SIGNAL)

    shore.moment += dt.timedelta(seconds=SHOWN_FOR + 1)

    assert shore.ledger().unknown() == []


def test_a_record_of_an_earlier_release_means_sent(shore: Shore) -> None:
    shore.process()(SIGNAL)
    (route,) = shore.store.load(SIGNAL.id)
    shore.store.initialize_if_absent("old", route, b"2026-11-30T07:00:00+00:00")

    assert shore.ledger().state("old", route) is DeliveryState.SENT
    shore.process()(Signal("old", SIGNAL.topic, SIGNAL.payload))
    assert shore.received == [HOOK]
