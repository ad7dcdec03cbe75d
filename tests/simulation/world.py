"""The world outside the store: effects that nodes have on it, by idempotency key and by (run, step, memo).

It survives every process. Each execution of an effect gives another receipt, so that a value that was used without being the
recorded one shows in the state.
"""

import re
from collections import Counter
from typing import Any

from tests.simulation.ledger import Ledger
from workflow import JsonSerializer, idempotency_key
from workflow.context import StepContext, running_step
from workflow.records import memo_key
from workflow.status import WorkflowStatus

__all__ = ["Place", "World", "without_numbers"]

Place = tuple[str, str, str]
"""A run, a step of it, and the name of an effect in that step."""


class World:
    """What has happened outside."""

    def __init__(self, ledger: Ledger) -> None:
        self.executions: Counter[Place] = Counter()
        self.finals: dict[str, Any] = {}
        """What the last node of each run found in the state."""
        self._ledger = ledger
        self._codec = JsonSerializer()
        self._keys: dict[Place, str] = {}
        self._tripped: set[tuple[str, str]] = set()
        self._answers: dict[Place, Any] = {}

    def effect(self, name: str) -> str:
        """Do something outside, as the closure of the memo ``name``. The receipt says how often it was done."""
        step = _step()
        place = _place(step, name)
        key = idempotency_key(name)
        if self._keys.setdefault(place, key) != key:
            self._ledger.blame(f"{place} had the idempotency key {self._keys[place]}, and has {key}")
        if list(self._keys.values()).count(key) > 1:
            self._ledger.blame(f"{place} shares its idempotency key with another effect")
        if memo_key(*place) in self._ledger.recorded and self._is_owner(step):
            self._ledger.blame(f"the owner of the run repeated the recorded effect {place}")
        self.executions[place] += 1
        return f"{step.step_id}/{name}#{self.executions[place]}"

    def trips(self, name: str) -> bool:
        """Whether this is the first time that this run gets here: the moment to fail."""
        known = (_step().store.control.run_id, name)
        first = known not in self._tripped
        self._tripped.add(known)
        return first

    def answer(self, name: str, payload: Any) -> Any:
        """A wait has returned ``payload``: an accepted one, and the same each time."""
        step = _step()
        place = _place(step, name)
        if self._answers.setdefault(place, payload) != payload:
            self._ledger.blame(f"wait {place} returned {self._answers[place]} once and {payload} now")
        if payload not in self._ledger.accepted.get(place[:2], []):
            self._ledger.blame(f"wait {place} returned {payload}, which nobody had accepted")
        return payload

    def final(self, values: dict[str, Any]) -> None:
        """The last node of a run was called with this state: the same each time, and made of recorded receipts."""
        run_id = _step().store.control.run_id
        if self.finals.setdefault(run_id, values) != values:
            self._ledger.blame(f"run {run_id} ended with {values} and with {self.finals[run_id]}")
        for receipt in _receipts(values):
            step_id, _, rest = receipt.rpartition("/")
            recorded = self._ledger.recorded.get(memo_key(run_id, step_id, rest.partition("#")[0]))
            if recorded is None or receipt not in _receipts(self._codec.loads(recorded)):
                self._ledger.blame(f"the state holds {receipt}, and its memo holds {recorded}")

    def repeated(self, run_id: str) -> int:
        """How many effects of a run were done more often than once, counting each repetition."""
        return sum(count - 1 for place, count in self.executions.items() if place[0] == run_id)

    def places(self, run_id: str) -> set[tuple[str, str]]:
        """The (step, effect) pairs of a run that were done at all."""
        return {place[1:] for place in self.executions if place[0] == run_id}

    def _is_owner(self, step: StepContext) -> bool:
        held, stored = step.store.control, self._ledger.control(step.store.workflow_id)
        return stored is not None and stored.status is WorkflowStatus.RUNNING and stored.writer == held.writer


_NUMBER = re.compile(r"#\d+|'by': '[^']*'")
_RECEIPT = re.compile(r"[\w.<>/-]+/\w+#\d+")


def without_numbers(value: Any) -> str:
    """A value as text in which nothing says how often an effect was done, or who answered."""
    return _NUMBER.sub("", repr(value))


def _receipts(value: Any) -> set[str]:
    return set(_RECEIPT.findall(repr(value)))


def _step() -> StepContext:
    step = running_step()
    assert step is not None
    return step


def _place(step: StepContext, name: str) -> Place:
    return step.store.control.run_id, step.step_id, name
