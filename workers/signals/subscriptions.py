"""From the bus to runs that wait: a signal ends every wait for its topic that it matches, whenever it was published.

There is no gap. A run that waits names the position on the bus behind which it listens, and its index entry names the topic and
is due at once. A signal that is published later finds the entry (`Subscriptions.hear`); one that was published before is found
when the due entry is seen to (`Subscriptions.catch_up`). Both read the bus from the run's own position, so that of several
signals the first one counts, and a run is never given one that came before it asked.

Delivery is fenced by run and interruption: what comes twice, or too late, is refused and changes nothing.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import structlog

from bus import BusError, BusUnreachableError, Signal, SignalBus, check_topic
from persistence import IndexEntry, Persistence, PersistenceError, UnreachableError
from workers.broker.hints import Hints
from workflow import (
    ExecutionRequest,
    WaitForEventRequest,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowStatus,
)
from workflow.records import CONTROL

__all__ = ["REST", "Subscriptions"]

REST = 900
"""Seconds between two looks at a wait for which nothing has come: for a signal whose delivery failed for good."""
_REMEMBERED = 10_000
"""Waits for which a process remembers how far it has looked, so that it does not look through the same signals again."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Wait:
    """One wait of one run."""

    workflow_id: str
    run_id: str
    request: WaitForEventRequest

    @property
    def key(self) -> tuple[str, str, int]:
        return self.workflow_id, self.run_id, self.request.id


class Subscriptions:
    """Delivers signals to waiting runs. ``hints`` tell workers that a run can go on.

    ``engine_of`` gives the engine that reads a run's records, by name and workflow id: runs may have a codec of their own.
    """

    def __init__(
        self, store: Persistence, engine_of: Callable[[str, str], WorkflowEngine], signals: SignalBus, hints: Hints
    ) -> None:
        self._store = store
        self._engine_of = engine_of
        self._signals = signals
        self._hints = hints
        self._looked: OrderedDict[tuple[str, str, int], str] = OrderedDict()
        self._named: set[str] = set()

    def hear(self, signal: Signal) -> None:
        """Offer a signal to every run that waits for its topic. One that nobody waits for costs one look at the index.

        A run that cannot be read keeps nobody else from the signal.
        """
        for entry in self._waiting(signal.topic):
            try:
                self.catch_up(entry)
            except (UnreachableError, BusUnreachableError):
                raise
            except (PersistenceError, WorkflowError, BusError) as trouble:
                self._name(entry, trouble)

    def attend(self, entry: IndexEntry, now: float) -> bool:
        """See to a due entry of a run that waits: catch up, and leave the run alone until its deadline.

        False when the entry is due for another reason, the deadline for instance, or when the wait cannot be served.
        """
        fence = self._store.get(entry.partition, CONTROL)
        # What the caller saw may be of an earlier moment than the fence.
        current = self._store.entry(entry.partition)
        if fence is None or current is None or current.awaits is None or current.due is None or current.due > now:
            return False
        if self.catch_up_safely(current):
            return True
        wait = self._wait_safely(current)
        deadline = wait.request.deadline if wait is not None else None
        if wait is None or (deadline is not None and deadline.timestamp() <= now):
            return False
        # A signal that is published from here on finds the entry. Should its delivery fail for good, the next look helps.
        due = now + REST if deadline is None else min(now + REST, deadline.timestamp())
        self._store.write_if_unchanged(current.partition, CONTROL, fence, {}, index=replace(current, due=due))
        return True

    def catch_up_safely(self, entry: IndexEntry) -> bool:
        """`catch_up`, but for a run that cannot be read and a bus that does not answer: then False."""
        try:
            return self.catch_up(entry)
        except (UnreachableError, BusUnreachableError) as away:
            if isinstance(away, UnreachableError):
                raise
        except (PersistenceError, WorkflowError, BusError) as trouble:
            self._name(entry, trouble)
        return False

    def catch_up(self, entry: IndexEntry) -> bool:
        """Give a waiting run the first signal since its position that ends its wait. Whether there was one.

        A signal that the wait refuses is passed over.
        """
        wait = self._wait(entry)
        if wait is None:
            return False
        for signal in self._matches(wait):
            if self._deliver(wait, signal, entry.name):
                return True
            if self._wait(entry) != wait:
                break  # somebody else was faster
        return False

    def _waiting(self, topic: str) -> Iterator[IndexEntry]:
        after = None
        while page := self._store.find(status=WorkflowStatus.SUSPENDED.value, awaits=topic, after=after):
            yield from page
            after = page[-1]

    def _wait(self, entry: IndexEntry) -> _Wait | None:
        found = self._engine_of(entry.name, entry.partition).inspect(entry.partition)
        if found is None or found.input_accepted or not isinstance(found.interrupt, WaitForEventRequest):
            return None
        if found.interrupt.listens_since is None:
            return None
        return _Wait(entry.partition, found.run_id, found.interrupt)

    def _wait_safely(self, entry: IndexEntry) -> _Wait | None:
        try:
            wait = self._wait(entry)
            return None if wait is None or not check_topic(wait.request.event_name) else wait
        except UnreachableError:
            raise
        except (PersistenceError, WorkflowError, BusError):
            return None

    def _matches(self, wait: _Wait) -> Iterator[Signal]:
        """The signals that may end a wait, oldest first, from where this process has not looked yet."""
        topics = (check_topic(wait.request.event_name),)
        position = self._looked.get(wait.key, wait.request.listens_since)
        while True:
            page = self._signals.read(topics, position)
            yield from (signal for signal in page if wait.request.ended_by(signal.payload, signal.entry_id))
            position = page.position
            self._remember(wait, position)
            if not page:
                return

    def _deliver(self, wait: _Wait, signal: Signal, name: str) -> bool:
        answer = ExecutionRequest.signal(
            signal.topic,
            dict(signal.payload),
            expected_run_id=wait.run_id,
            expected_interrupt_id=wait.request.id,
            position=signal.entry_id,
        )
        try:
            self._engine_of(name, wait.workflow_id).deliver(wait.workflow_id, answer)
        except WorkflowRefusedError as refusal:
            _log.debug("signal not delivered", workflow_id=wait.workflow_id, signal_id=signal.id, refusal=str(refusal))
            return False
        self._looked.pop(wait.key, None)
        self._hints.send(name, wait.workflow_id, wait.run_id)
        return True

    def _remember(self, wait: _Wait, position: str) -> None:
        self._looked[wait.key] = position
        self._looked.move_to_end(wait.key)
        if len(self._looked) > _REMEMBERED:
            self._looked.popitem(last=False)

    def _name(self, entry: IndexEntry, trouble: Exception) -> None:
        """Say once what keeps a run from its signals."""
        if entry.partition not in self._named:
            self._named.add(entry.partition)
            _log.error("a run cannot be given signals", workflow_id=entry.partition, topic=entry.awaits, trouble=str(trouble))
