"""Looks at the schedules in a thread beside the sweeper, so that a beat that has died stops nothing."""

import threading

from workers.schedules.looking import ScheduleLook

__all__ = ["ScheduleWatch"]


class ScheduleWatch:
    """Looks every ``every`` seconds, in a thread of its own: a sweep of the watchdog that takes long delays no hint."""

    def __init__(self, look: ScheduleLook, *, every: float) -> None:
        self._look = look
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until the last look is over."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._look.look_patiently()
            self._stopping.wait(self._every)
