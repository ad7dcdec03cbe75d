"""Where the bus stands, for runs that may come to wait for a signal: they listen from there."""

from collections.abc import Sequence

from bus import BusUnreachableError, SignalBus, latest_position

__all__ = ["BusPosition"]


class BusPosition:
    """Asks the bus. While it does not answer, the last place that this process knows stands in.

    An earlier place misses nothing, so that a step need not fail because the bus is away for a moment.
    """

    def __init__(self, signals: SignalBus) -> None:
        self._signals = signals
        self._last: str | None = None

    def __call__(self) -> str:
        """The position. Raises `bus.BusUnreachableError` when the bus has never answered."""
        try:
            self._last = self._signals.position()
        except BusUnreachableError:
            if self._last is None:
                raise
        return self._last

    def latest(self, positions: Sequence[str]) -> str:
        """See `workflow.signals.SignalPosition.latest`."""
        return latest_position(positions)
