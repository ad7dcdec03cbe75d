"""One thread per process keeps the leases of running segments alive, however busy their nodes are.

A heap holds, for each running segment, when its lease is to be extended next: at a third of its length. A segment whose node
runs longer than its ``node_timeout`` is extended no more, so that a hung node cannot hold a run for ever. A lease that has been
lost is never revived.
"""

import heapq
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from workflow.store import RunStore

__all__ = ["LeaseRenewer", "Renewal", "renewer"]

RENEWALS_PER_LEASE = 3

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Renewal:
    """The renewal of one segment's lease. Durations are in seconds, on the renewer's monotonic clock."""

    store: RunStore | None
    every: float
    node_timeout: float
    running: dict[str, float] = field(default_factory=dict[str, float])
    """When each node that runs now began, by its step id."""

    def is_over_time(self, now: float) -> bool:
        """Whether a node has run for so long that it is to be given up."""
        return any(now - began > self.node_timeout for began in tuple(self.running.values()))


@dataclass(order=True, slots=True)
class _Turn:
    at: float
    number: int
    renewal: Renewal = field(compare=False)


class LeaseRenewer:
    """Extends leases in one background thread, which starts with the first renewal."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._numbers = itertools.count()
        self.forget()

    def forget(self) -> None:
        """Drop everything: in a forked child the segments and the thread are the parent's."""
        self._changed = threading.Condition()
        self._turns: list[_Turn] = []
        self._running = False

    def keep(self, store: RunStore, lease_timeout: float, node_timeout: float) -> Renewal:
        """Begin to renew a segment's lease."""
        renewal = Renewal(store, lease_timeout / RENEWALS_PER_LEASE, node_timeout)
        with self._changed:
            self._schedule(renewal)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="workflow-leases", daemon=True).start()
        return renewal

    def node_begins(self, renewal: Renewal, step_id: str) -> None:
        """A node of this segment begins: its time is counted from here."""
        renewal.running[step_id] = self._monotonic()

    def node_ends(self, renewal: Renewal, step_id: str) -> None:
        """A node of this segment has ended."""
        renewal.running.pop(step_id, None)

    def release(self, renewal: Renewal) -> None:
        """Stop renewing: the segment has ended. Its turn may stay in the heap for a while, its records do not."""
        renewal.store = None

    def _schedule(self, renewal: Renewal) -> None:
        heapq.heappush(self._turns, _Turn(self._monotonic() + renewal.every, next(self._numbers), renewal))
        self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                wait = self._turns[0].at - self._monotonic() if self._turns else None
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                renewal = heapq.heappop(self._turns).renewal
            store = renewal.store
            if store is None:
                continue
            if not renewal.is_over_time(self._monotonic()):
                self._extend(store)
            # It keeps its turn: a later node of the segment, or a store that answers again, goes on with the lease.
            with self._changed:
                self._schedule(renewal)

    def _extend(self, store: RunStore) -> None:
        try:
            store.renew()
        except Exception as trouble:  # noqa: BLE001 - the trouble of one segment must not end the leases of the others
            _log.warning("the lease of workflow %r was not renewed: %s", store.workflow_id, trouble)


renewer = LeaseRenewer()
os.register_at_fork(after_in_child=renewer.forget)
