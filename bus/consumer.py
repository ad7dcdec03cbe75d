"""A consumer: takes the signals of its group from any bus and hands them to a handler, until each is handled or dead.

The loop is one coroutine that decides and calls; what a blocking call or a handler means for a thread or an event loop is
its driver's business (`bus.driving`). A signal is handled at least once: a consumer that dies between handling and
acknowledging leaves a delivery that another one takes over. Handlers must bear a repetition, or keep to a ledger
(`bus.ledgers`), by which effects in the ledger's own store are made once.
"""

import os
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

import structlog

from bus.contract import BEGINNING, EVERY_TOPIC, Delivery, GroupReader, SignalBus
from bus.driving import Driver, LoopDriver, run_blocking
from bus.errors import BusError
from bus.failure import MAX_DELIVERIES, Backoff, is_last, told
from bus.ledgers.contract import Ledger, once_only
from bus.ordering import Order, OrderBy
from bus.patience import PatientDriver
from bus.topics import check_patterns, matches_any

__all__ = ["BATCH", "DEFAULT_BACKOFF", "TAKEOVER_AFTER", "WAIT", "Handler", "SignalConsumer"]

Handler = Callable[..., Any]
"""Handles one signal, or raises to have it delivered again. Plain or async; what it returns does not matter.

It is called with the signal, and where the consumer has a ledger also with the ledger's open transaction.
"""

BATCH = 16
"""Signals of each kind (retries and new ones) that are taken in one go."""
WAIT = 1.0
"""Seconds that an idle consumer waits for a new signal before it looks for retries, abandoned ones and `stop` again."""
TAKEOVER_AFTER = 60.0
"""Seconds after which what a consumer took and left alone goes to another one: a handler must be done in less."""
DEFAULT_BACKOFF = Backoff()

_log = structlog.get_logger(__name__)


class SignalConsumer:
    """One member of a group. Run as many as needed, each with an object of its own; they share the group's signals.

    ``topics`` are patterns; other topics are acknowledged unseen. ``start`` places a new group (`SignalBus.join`). A handler
    that raises gets the signal again after ``backoff(attempt)`` seconds, without holding up others; after ``max_deliveries``,
    those to consumers that died included, it becomes a dead letter of the group with the last error. What a consumer took
    and left alone for ``takeover_after`` seconds goes to another one. ``name`` must be unique among the living consumers of
    a group.

    Up to ``concurrency`` handlers run at a time, plain ones in threads. ``order_by`` names a key of the payload, or is a
    function of the signal: signals that are equal in it are handled one after the other, as they were published, also when
    one of them fails and is tried again. That order is this consumer's own: a group in which it must hold has one consumer.

    With a ``ledger`` the handler gets the ledger's transaction as its second argument, and is not called for what the
    ledger knows to be handled.
    """

    def __init__(
        self,
        bus: SignalBus,
        group: str,
        handler: Handler,
        *,
        topics: Sequence[str] = EVERY_TOPIC,
        start: str | datetime = BEGINNING,
        max_deliveries: int = MAX_DELIVERIES,
        backoff: Callable[[int], float] = DEFAULT_BACKOFF,
        takeover_after: float = TAKEOVER_AFTER,
        name: str | None = None,
        concurrency: int = 1,
        order_by: OrderBy | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        if max_deliveries < 1 or takeover_after <= 0 or concurrency < 1:
            raise BusError("max_deliveries and concurrency must be 1 or more, and takeover_after more than 0 seconds")
        self.lost = 0
        """Signals that were taken and then found to be trimmed or unreadable, since this object was made."""
        self._handler = handler if ledger is None else once_only(handler, ledger, group)
        self._concurrency = concurrency
        self._order = Order(order_by, side_by_side=concurrency > 1, forget_after=takeover_after)
        self._topics = check_patterns(topics)
        self._max_deliveries = max_deliveries
        self._backoff = backoff
        self._takeover_after = takeover_after
        self._stopping = threading.Event()
        self._name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._reader: GroupReader = bus.join(group, self._name, topics=topics, start=start, takeover_after=takeover_after)
        self._log = _log.bind(group=group, consumer=self._name)

    @property
    def aio(self) -> "AsyncSignalConsumer":
        """The same calls for asyncio: the loop is never blocked, async handlers run on it, plain ones in a thread."""
        return AsyncSignalConsumer(self)

    def run(self) -> None:
        """Handle signals until `stop`. Trouble with the server is waited out, and said once."""
        run_blocking(self._run, self._handler)

    def drain(self) -> int:
        """Handle what can be handled now and return how many were. Retries that are not due stay. Trouble raises `BusError`."""
        return run_blocking(self._drain, self._handler)

    def stop(self) -> None:
        """End `run` once the handler in hand is done; the rest is given back. For good, from any thread or signal handler."""
        self._stopping.set()

    async def _run(self, driver: Driver) -> None:
        patient = PatientDriver(driver, self._stopping, self._log)
        try:
            while not self._stopping.is_set():
                found, _ = await self._handle_batch(patient)
                if not found and not self._stopping.is_set():
                    await patient.call(self._reader.wait, WAIT)
            await patient.call(self._reader.leave)
        except BusError as trouble:
            self._log.warning("stopped amid bus trouble: what was in hand comes back to the group", trouble=str(trouble))

    async def _drain(self, driver: Driver) -> int:
        handled, found = 0, 1
        while found and not self._stopping.is_set():
            found, succeeded = await self._handle_batch(driver)
            handled += succeeded
        await driver.call(self._reader.leave)
        return handled

    async def _handle_batch(self, driver: Driver) -> tuple[int, int]:
        """Take once and see to everything taken. Returns how many there were, and how many were handled with success."""
        # Measured from before the take: until then none of it can have gone to another consumer.
        surely_ours_until = monotonic() + self._takeover_after / 2
        taken = await driver.call(self._reader.take, BATCH * self._concurrency)
        self._count_lost(taken.lost)
        lanes = self._order.lanes(await self._without_other_topics(driver, taken.deliveries))
        works = [partial(self._handle_lane, driver, lane, surely_ours_until) for lane in lanes]
        succeeded = await driver.together(works, self._concurrency)
        return len(taken.deliveries) + taken.lost, sum(succeeded)

    async def _handle_lane(self, driver: Driver, lane: Sequence[Delivery], surely_ours_until: float) -> int:
        """See to these one after the other. Returns how many were handled with success."""
        succeeded = 0
        for place, delivery in enumerate(lane):
            if self._stopping.is_set() or monotonic() > surely_ours_until:
                await self._give_back(driver, lane[place:], 0.0)
                break
            if wait := self._order.wait_of(delivery):
                await self._give_back(driver, [delivery], wait)
            else:
                succeeded += await self._handle(driver, delivery)
        return succeeded

    async def _give_back(self, driver: Driver, deliveries: Sequence[Delivery], delay: float) -> None:
        for delivery in deliveries:
            self._order.put_off(delivery, delay)
        await driver.call(self._reader.give_back, deliveries, delay)

    async def _without_other_topics(self, driver: Driver, deliveries: Sequence[Delivery]) -> list[Delivery]:
        sorted_out = [(matches_any(self._topics, delivery.signal.topic), delivery) for delivery in deliveries]
        others = [delivery for wanted, delivery in sorted_out if not wanted]
        if others:
            await driver.call(self._reader.acknowledge, others)
        return [delivery for wanted, delivery in sorted_out if wanted]

    async def _handle(self, driver: Driver, delivery: Delivery) -> bool:
        if delivery.attempt > self._max_deliveries:
            await self._bury(
                driver, delivery, f"delivered {delivery.attempt - 1} times and never answered: its handler hung or died"
            )
            return False
        try:
            await driver.handle(self._handler, delivery.signal)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is its answer: not this time
            await self._fail(driver, delivery, told(error))
            return False
        self._order.over(delivery)
        await driver.call(self._reader.acknowledge, [delivery])
        return True

    async def _fail(self, driver: Driver, delivery: Delivery, error: str) -> None:
        if is_last(delivery.attempt, self._max_deliveries):
            await self._bury(driver, delivery, error)
            return
        delay = self._backoff(delivery.attempt)
        self._log.warning(
            "handling failed", signal_id=delivery.signal.id, attempt=delivery.attempt, again_in=delay, error=error
        )
        self._order.put_off(delivery, delay)
        await driver.call(self._reader.retry, delivery, delay)

    async def _bury(self, driver: Driver, delivery: Delivery, error: str) -> None:
        self._order.over(delivery)
        self._log.error("dead letter", signal_id=delivery.signal.id, attempt=delivery.attempt, error=error)
        await driver.call(self._reader.bury, delivery, error)

    def _count_lost(self, lost: int) -> None:
        if lost:
            self.lost += lost
            self._log.error("signals lost: the stream dropped them before they were handled", lost=lost, lost_in_all=self.lost)


class AsyncSignalConsumer:
    """`SignalConsumer` on the caller's event loop. To end `run`, call `stop` of the consumer rather than cancel the task.

    What a cancelled task has in hand comes back after the takeover time.
    """

    def __init__(self, consumer: SignalConsumer) -> None:
        self._consumer = consumer

    async def run(self) -> None:
        """See `SignalConsumer.run`."""
        await self._consumer._run(LoopDriver())  # pyright: ignore[reportPrivateUsage] - two faces of one object

    async def drain(self) -> int:
        """See `SignalConsumer.drain`."""
        return await self._consumer._drain(LoopDriver())  # pyright: ignore[reportPrivateUsage]
