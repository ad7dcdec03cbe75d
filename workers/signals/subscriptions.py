"""From the bus to runs that wait: a signal ends every wait for its topic that it matches, whenever it was published.

There is no gap. A run that waits names the position on the bus behind which it listens, and its index entry names the topic and
is due at once. A signal that is published later finds the entry (`Subscriptions.hear`); one that was published before is found
when the due entry is seen to (`Subscriptions.catch_up`). Both read the bus from the run's own position, so that of several
signals the first one counts, and a run is never given one that came before it asked.

Delivery is fenced by run and interruption: what comes twice, or too late, is refused and changes nothing.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import structlog

from bus import Signal, SignalBus
from persistence import IndexEntry, Persistence
from workers.broker.hints import Hints
from workflow import ExecutionRequest, WaitForEventRequest, WorkflowEngine, WorkflowRefusedError, WorkflowStatus
from workflow.records import CONTROL

__all__ = ["Subscriptions"]

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
    """Delivers signals to waiting runs. ``hints`` tell workers that a run can go on."""

    def __init__(self, store: Persistence, engine: WorkflowEngine, signals: SignalBus, hints: Hints) -> None:
        self._store = store
        self._engine = engine
        self._signals = signals
        self._hints = hints
        self._looked: OrderedDict[tuple[str, str, int], str] = OrderedDict()

    def hear(self, signal: Signal) -> None:
        """Offer a signal to every run that waits for its topic. One that nobody waits for costs one look at the index."""
        for entry in self._waiting(signal.topic):
            self.catch_up(entry)

    def catch_up(self, entry: IndexEntry) -> bool:
        """Give a waiting run the first signal since its position that ends its wait. Whether there was one."""
        wait = self._wait(entry)
        if wait is None:
            return False
        signal = self._first_match(wait)
        return signal is not None and self._deliver(wait, signal, entry.name)

    def attend(self, entry: IndexEntry, now: float) -> bool:
        """See to a due entry of a run that waits: catch up, and leave the run alone until its deadline.

        False when the entry is due for another reason, the deadline for instance.
        """
        if entry.status != WorkflowStatus.SUSPENDED.value or entry.awaits is None:
            return False
        fence = self._store.get(entry.partition, CONTROL)
        wait = self._wait(entry)
        if fence is None or wait is None:
            return False
        if self.catch_up(entry):
            return True
        deadline = wait.request.deadline
        if deadline is not None and deadline.timestamp() <= now:
            return False
        # A signal that is published from here on finds the entry itself.
        rest = replace(entry, due=None if deadline is None else deadline.timestamp())
        self._store.write_if_unchanged(entry.partition, CONTROL, fence, {}, index=rest)
        return True

    def _waiting(self, topic: str) -> Iterator[IndexEntry]:
        after = None
        while page := self._store.find(status=WorkflowStatus.SUSPENDED.value, awaits=topic, after=after):
            yield from page
            after = page[-1]

    def _wait(self, entry: IndexEntry) -> _Wait | None:
        found = self._engine.inspect(entry.partition)
        if found is None or found.input_accepted or not isinstance(found.interrupt, WaitForEventRequest):
            return None
        if found.interrupt.listens_since is None:
            return None
        return _Wait(entry.partition, found.run_id, found.interrupt)

    def _first_match(self, wait: _Wait) -> Signal | None:
        position = self._looked.get(wait.key, wait.request.listens_since)
        while True:
            page = self._signals.read((wait.request.event_name,), position)
            for signal in page:
                if wait.request.ended_by(signal.payload):
                    return signal
            position = page.position
            if not page:
                self._remember(wait, position)
                return None

    def _deliver(self, wait: _Wait, signal: Signal, name: str) -> bool:
        answer = ExecutionRequest.signal(
            signal.topic,
            dict(signal.payload),
            expected_run_id=wait.run_id,
            expected_interrupt_id=wait.request.id,
            position=signal.entry_id,
        )
        try:
            self._engine.deliver(wait.workflow_id, answer)
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
