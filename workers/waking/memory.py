"""Wake-ups within one process. What other processes settle is found by looking, often."""

from collections.abc import Generator
from contextlib import contextmanager

from workers.waking.contract import Wake
from workers.waking.ears import Ears, ear_of

__all__ = ["InMemoryWakeUps"]


class InMemoryWakeUps:
    """`WakeUps` of one process."""

    look_every = 0.1

    def __init__(self) -> None:
        self._ears = Ears()

    def tell(self, workflow_id: str, run_id: str) -> None:
        """See `WakeUps.tell`."""
        self._ears.wake(ear_of(workflow_id, run_id))

    @contextmanager
    def listening(self, workflow_id: str, run_id: str, wake: Wake) -> Generator[None]:
        """See `WakeUps.listening`."""
        ear = ear_of(workflow_id, run_id)
        self._ears.add(ear, wake)
        try:
            yield
        finally:
            self._ears.remove(ear, wake)
