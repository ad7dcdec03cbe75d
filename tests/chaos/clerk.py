"""The clerk: starts the errands and gives the answers that they wait for, by way of a client that the faults strike too.

A call that fails because the server is away is made again: each is safe to repeat.
"""

import json
import random
import threading
import time
from contextlib import suppress

from bus import BusError
from persistence import IndexEntry, UnreachableError
from tests.chaos.errands import ANSWERED, KINDS, heard_early, kind_of, number_of
from tests.chaos.field import Field
from workflow import ApprovalRequest, WorkflowRefusedError, WorkflowStatus

__all__ = ["Clerk", "errands"]

WEIGHTS = {"chain": 3, "long": 1, "timer": 2, "signal": 4, "fork": 3, "retry": 2, "approval": 3, "refused": 1, "cancelled": 1}
"""How many errands there are of each kind, in proportion. Those of the schedule come by themselves."""
LOOK = 0.2
"""Seconds between looks at what waits for an answer."""


def errands(count: int, chance: random.Random) -> list[str]:
    """The workflow ids of so many errands: at least one of each kind."""
    kinds = list(WEIGHTS)
    drawn = kinds + chance.choices(kinds, [WEIGHTS[kind] for kind in kinds], k=count - len(kinds))
    chance.shuffle(drawn)
    return [f"{kind}-{number}" for number, kind in enumerate(drawn)]


class Clerk:
    """Works in a thread of its own: calls may take as long as an outage does."""

    def __init__(self, field: Field, wanted: list[str], pace: float) -> None:
        self._client = field.client
        self._wanted = wanted
        self._pace = pace
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, name="clerk", daemon=True)
        self.trouble: BaseException | None = None
        self.started = 0

    @property
    def has_started_all(self) -> bool:
        """Whether every errand was begun."""
        return self.started == len(self._wanted)

    def begin(self) -> None:
        """Begin to work."""
        self._thread.start()

    def end(self) -> None:
        """Stop working. Raises what kept the clerk from it."""
        self._done.set()
        self._thread.join(60)
        self.check()

    def check(self) -> None:
        """Raise what keeps the clerk from working."""
        if self.trouble is not None:
            raise self.trouble

    def _work(self) -> None:
        began = time.monotonic()
        try:
            while not self._done.wait(LOOK):
                with suppress(UnreachableError, BusError):
                    while self.started < min(len(self._wanted), (time.monotonic() - began) / self._pace):
                        self._start(self._wanted[self.started])
                        self.started += 1
                    self._answer_all()
        except BaseException as trouble:  # noqa: BLE001 - it is the test that must fail
            self.trouble = trouble

    def _start(self, workflow_id: str) -> None:
        kind = kind_of(workflow_id)
        assert kind in KINDS
        self._client.start(f"chaos-{kind}", workflow_id)
        if kind == "signal" and heard_early(number_of(workflow_id)):
            self._publish(workflow_id)

    def _publish(self, workflow_id: str) -> None:
        payload = {"errand": workflow_id, "word": f"to {workflow_id}"}
        self._client.runtime.signals.publish(f"answer/{workflow_id}", ANSWERED, payload)

    def _answer_all(self) -> None:
        for entry in self._client.runs(status=WorkflowStatus.SUSPENDED, limit=1000):
            with suppress(WorkflowRefusedError):  # it has gone on meanwhile
                self._answer(entry)

    def _answer(self, entry: IndexEntry) -> None:
        workflow_id, run_id = entry.partition, json.loads(entry.summary)["run_id"]
        match kind_of(workflow_id):
            case "signal" if not heard_early(number_of(workflow_id)):
                self._publish(workflow_id)
            case "cancelled":
                self._client.cancel(workflow_id, run_id=run_id)
            case "approval":
                self._approve(workflow_id, run_id)
            case _:
                pass

    def _approve(self, workflow_id: str, run_id: str) -> None:
        shown = self._client.runtime.engine.inspect(workflow_id)
        if shown is None or shown.input_accepted or not isinstance(shown.interrupt, ApprovalRequest):
            return
        question, number = shown.interrupt.message, shown.interrupt.id
        give = self._client.approve if question == "the first question" else self._client.answer
        give(workflow_id, {"to": question}, run_id=run_id, interrupt_id=number)
