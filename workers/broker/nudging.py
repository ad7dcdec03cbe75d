"""A nudge for the loop of a worker whose pool is of threads.

Such a worker asks for messages only while it has a free place, and a thread that ends a task wakes nobody: the loop would
notice the free place with its next tick, up to a second later. So each task that ends writes a byte to a pipe that it watches.
"""

import os
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, cast

from celery import bootsteps

__all__ = ["Nudge"]


class Nudge(bootsteps.StartStopStep):
    """A step of the consumer. With pools that have no threads it does nothing."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._ends: tuple[int, int] | None = None

    def register_with_event_loop(self, parent: Any, hub: Any) -> None:
        """Have the loop watch the pipe: anew after each reconnection, which forgets all that it watched."""
        executor = getattr(parent.pool, "executor", None)
        if executor is None:
            return
        if self._ends is None:
            self._ends = os.pipe()
            for end in self._ends:
                os.set_blocking(end, False)
            _tell_of_ends(executor, self._ends[1])
        hub.add_reader(self._ends[0], self._drain, self._ends[0])

    @staticmethod
    def _drain(reader: int) -> None:
        with suppress(BlockingIOError):
            os.read(reader, 4096)


def _tell_of_ends(executor: Executor, writer: int) -> None:
    """Have every task of the pool write a byte when it is over, and its place is free."""
    submit = executor.submit

    def nudge(_: Future[Any]) -> None:
        with suppress(OSError):  # full: the loop has been told
            os.write(writer, b".")

    def submit_and_tell(*args: Any, **options: Any) -> Future[Any]:
        future = submit(*args, **options)
        future.add_done_callback(nudge)
        return future

    cast("Any", executor).submit = submit_and_tell
