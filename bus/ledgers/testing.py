"""The contract of a ledger as tests, for every store, also one of your own.

Subclass `LedgerContract` in a test module and give it fixtures ``ledger``, empty, and ``effect``.
"""

import threading
from contextlib import suppress
from typing import Any, Protocol

import pytest

from bus.consumer import SignalConsumer
from bus.contract import GroupInfo, Signal
from bus.ledgers.contract import Ledger
from bus.memory import InMemorySignalBus
from bus.testing import AT_ONCE, eventually

__all__ = ["LedgerContract"]


class Effect(Protocol):
    """An effect in the store of a ledger, for its contract: how often was it made for an id?"""

    def make(self, transaction: Any, signal_id: str) -> None:
        """Put the effect into the open transaction."""
        ...

    def count(self, signal_id: str) -> int:
        """How many times it is there."""
        ...


class LedgerContract:
    """What `bus.ledgers.Ledger` promises. Each test gets a new, empty ``ledger``, and an ``effect`` in its store."""

    def test_effect_and_record_are_committed_as_one(self, ledger: Ledger, effect: Effect) -> None:
        for _ in range(2):
            with ledger.once("g", "a") as transaction:
                if transaction is not None:
                    effect.make(transaction, "a")
        assert effect.count("a") == 1
        with ledger.once("g", "a") as transaction:
            assert transaction is None

    def test_groups_and_ids_are_apart(self, ledger: Ledger, effect: Effect) -> None:
        for group, name in (("g", "a"), ("g", "A"), ("h", "a"), ("g", "a ")):
            with ledger.once(group, name) as transaction:
                effect.make(transaction, name)
        assert (effect.count("a"), effect.count("A"), effect.count("a ")) == (2, 1, 1)

    def test_an_error_leaves_neither_effect_nor_record(self, ledger: Ledger, effect: Effect) -> None:
        def fail() -> None:
            with ledger.once("g", "a") as transaction:
                effect.make(transaction, "a")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert effect.count("a") == 0
        with ledger.once("g", "a") as transaction:
            effect.make(transaction, "a")
        assert effect.count("a") == 1

    def test_of_many_at_once_one_takes_effect(self, ledger: Ledger, effect: Effect) -> None:
        begin = threading.Barrier(4)

        def handle() -> None:
            begin.wait(10)
            # Those that lose may be told by an error, as a consumer would be: they come again.
            for _ in range(10):
                with suppress(Exception), ledger.once("g", "a") as transaction:
                    if transaction is not None:
                        effect.make(transaction, "a")

        threads = [threading.Thread(target=handle) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert effect.count("a") == 1

    def test_a_redelivery_after_a_crash_before_the_acknowledgement_is_a_no_op(self, ledger: Ledger, effect: Effect) -> None:
        bus = InMemorySignalBus()
        bus.publish("a", "fact", {})
        # The first consumer dies after its handler is done: nobody acknowledges.
        (delivery,) = bus.join("g", "dies", takeover_after=0.01).take(1).deliveries
        with ledger.once("g", delivery.signal.id) as transaction:
            effect.make(transaction, "a")
        handled: list[int] = []

        def handler(signal: Signal, transaction: Any) -> None:
            effect.make(transaction, signal.id)

        heir = SignalConsumer(bus, "g", handler, ledger=ledger, takeover_after=0.01)
        eventually(lambda: handled.append(heir.drain()) or sum(handled) == 1)
        assert effect.count("a") == 1
        assert bus.groups() == [GroupInfo("g", unread=0, pending=0, retrying=0, dead=0)]

    def test_an_async_handler_keeps_to_the_ledger_too(self, ledger: Ledger, effect: Effect) -> None:
        bus, tries = InMemorySignalBus(), list[str]()
        bus.publish_many([Signal(name, "fact", {}) for name in ("a", "b")])

        async def handler(signal: Signal, transaction: Any) -> None:
            tries.append(signal.id)
            effect.make(transaction, signal.id)
            if tries == ["a"]:
                raise ValueError("not the first time")

        consumer = SignalConsumer(bus, "g", handler, ledger=ledger, backoff=AT_ONCE)
        handled: list[int] = []
        eventually(lambda: handled.append(consumer.drain()) or sum(handled) == 2)
        assert (effect.count("a"), effect.count("b"), sorted(tries)) == (1, 1, ["a", "a", "b"])
