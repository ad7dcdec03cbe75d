"""What the engine under exploration does not decide itself: how its locks and threads wait, and when leases are renewed.

Both are moments at which another thread may come in, so both are given to the scheduler.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

import workflow.bridge
import workflow.output
import workflow.path
import workflow.segment
import workflow.store
import workflow.stream
from tests.simulation.pools import BatonPool
from tests.simulation.threads import BatonThreading
from tests.simulation.universe import Process, ProcessStore
from workflow.leases import LeaseRenewer, Renewal
from workflow.store import RunStore

__all__ = ["folding", "simulated_engine"]


class ScriptedRenewer(LeaseRenewer):
    """A renewer without a thread: it only knows whose leases there are; a `renewing` actor extends them."""

    def keep(self, store: RunStore, lease_timeout: float, node_timeout: float) -> Renewal:
        """Begin to renew a segment's lease."""
        _process_of(store).leases.append(store)
        return Renewal(store, lease_timeout, node_timeout)

    def release(self, renewal: Renewal) -> None:
        """The segment has ended."""
        if renewal.store is not None:
            _process_of(renewal.store).leases.remove(renewal.store)
        super().release(renewal)


def _process_of(store: RunStore) -> Process:
    proxy = cast(Any, store)._persistence
    assert isinstance(proxy, ProcessStore)
    return proxy.process


@contextmanager
def simulated_engine() -> Generator[None]:
    """The engine with simulated threads and a scripted renewer, for a block."""
    with (
        patch.object(workflow.store, "threading", BatonThreading()),
        patch.object(workflow.output, "threading", BatonThreading()),
        patch.object(workflow.stream, "threading", BatonThreading()),
        patch.object(workflow.segment, "renewer", ScriptedRenewer()),
        patch.object(workflow.bridge, "ThreadPoolExecutor", BatonPool),
    ):
        yield


@contextmanager
def folding(after: int) -> Generator[None]:
    """The engine folding settled steps already after so few, for a block. As many records are removed by one write at most."""
    with patch.object(workflow.path, "FOLD_AFTER", after):
        yield
