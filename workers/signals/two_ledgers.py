"""Two delivery ledgers as one: that of the mesh, and one on this machine's disk that no server can forget.

A server with an evicting policy drops what it holds, ids and deliveries alike: then a sweep repeats its fact, and only this
machine's ledger knows that it was told. A full server takes no record: then this machine's record is enough to send.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from persistence import PersistenceError, UnreachableError
from workers.signals.deliveries import Attempt, DeliveryLedger, DeliveryState

__all__ = ["Begun", "TwoLedgers"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """One attempt to deliver a signal, as each of the ledgers has it; None where it could not be recorded."""

    shared: Attempt | None
    here: Attempt | None


class TwoLedgers:
    """Like `DeliveryLedger`: an alert is sent when neither of the two knows that it was."""

    def __init__(self, shared: DeliveryLedger, here: DeliveryLedger) -> None:
        self._shared = shared
        self._here = here

    def begin(self, signal_id: str, route: str, on_unknown: Callable[[], None] = lambda: None) -> Begun | None:
        """See `DeliveryLedger.begin`."""
        try:
            shared = self._shared.begin(signal_id, route, on_unknown)
        except UnreachableError:
            raise
        except PersistenceError:
            match self._shared.state(signal_id, route):
                case DeliveryState.SENT:
                    return None
                case DeliveryState.FAILED | None:
                    return self._begin_here(signal_id, route)
                case _:
                    raise
        if shared is None:
            return None
        try:
            begun = self._begin_here(signal_id, route)
        except PersistenceError as trouble:
            _log.warning("this machine cannot record what it delivers", trouble=str(trouble))
            return Begun(shared, None)
        if begun is None:
            self._shared.end(shared, self._here.state(signal_id, route) or DeliveryState.SENT)
            return None
        return Begun(shared, begun.here)

    def end(self, attempt: Begun, state: DeliveryState) -> None:
        """See `DeliveryLedger.end`."""
        if attempt.here is not None:
            try:
                self._here.end(attempt.here, state)
            except PersistenceError as trouble:
                _log.warning("this machine cannot record what it delivers", trouble=str(trouble))
        if attempt.shared is not None:
            self._shared.end(attempt.shared, state)

    def _begin_here(self, signal_id: str, route: str) -> Begun | None:
        here = self._here.begin(signal_id, route)
        return None if here is None else Begun(None, here)
