"""Ctrl-C and its kin for an owner of processes: the first one unwinds, the others only say that there is a hurry."""

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(KeyboardInterrupt):
    """The owner was asked to stop by the signal `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = signal.Signals(number)


class StopSignals:
    """Handles the stop signals of this process from `install` to `restore`.

    The first one raises `StopRequested` in the main thread, wherever that is; within `held()` it waits for the end of the
    block. Python drops what is raised within a finalizer: `repeat_lost()` raises it again. Otherwise nothing is raised a
    second time, nor after `settle()`, so that cleaning up is never torn. `hurry()` tells whether one came after that. A
    signal that was ignored before (as by `nohup`) stays so.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._held = False
        self._settled = False
        self._raised: int | None = None
        self._waiting: int | None = None
        self._hurry = False

    def install(self) -> None:
        """Take the signals over. Outside the main thread Python delivers none, and this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Give the signals back to whoever handled them before."""
        while self._before:
            signal.signal(*self._before.popitem())

    def settle(self) -> None:
        """Raise nothing from here on."""
        self._settled = True

    def repeat_lost(self) -> None:
        """Raise the request again that nobody has heard: whoever gets here is not unwinding."""
        if self._raised is not None and not self._settled:
            self._raise(self._raised)

    def hurry(self) -> bool:
        """Tell whether a signal came after the one that was raised, or after `settle`."""
        return self._hurry

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Keep a signal waiting until the block is over."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._waiting is not None and not self._settled:
                self._raise(self._waiting)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._settled or self._raised is not None:
            self._hurry = True
        elif self._held:
            self._waiting = number
        else:
            self._raise(number)

    def _raise(self, number: int) -> None:
        self._raised = number
        raise StopRequested(number)
