"""The explorer explored: each fault that is planted in the engine or in the store must show."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

import workflow.admission
import workflow.context
import workflow.store
from persistence import InMemoryPersistence
from tests.simulation.crashes import driven, verdict
from tests.simulation.driver import Recovery
from tests.simulation.explore import interleavings, random_schedule, replayed
from tests.simulation.journey import journey
from tests.simulation.scenario import reference
from tests.simulation.scenarios.catalogue import SCENARIOS
from tests.simulation.threads import BatonLock
from tests.simulation.universe import Fault
from workflow.control import Control
from workflow.store import RunStore


@pytest.fixture(autouse=True)
def no_planted_reference() -> Iterator[None]:
    """Let no other test compare with what a planted engine did."""
    yield
    reference.cache_clear()


Plant = Callable[[], AbstractContextManager[Any]]


def planted(owner: Any, name: str, instead: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Something of the engine replaced, for a block."""
    return patch.object(owner, name, instead)


def always(value: bool) -> Callable[..., bool]:
    """A method that answers the same to everything."""

    def method(*given: Any) -> bool:
        return value

    return method


def careless_store() -> AbstractContextManager[Any]:
    """A store that writes whatever the condition holds."""

    def write(
        self: Any,
        partition: str,
        key: str,
        expected: bytes,
        records: Any,
        delete: Any = (),
        index: Any = None,
        append: Any = (),
    ) -> bool:
        self._apply(partition, records, delete, index, append)
        return True

    return planted(InMemoryPersistence, "write_if_unchanged", write)


def attempts_that_stand_still() -> AbstractContextManager[Any]:
    """A claim that does not count."""
    claimed = Control.claimed

    def uncounted(control: Control, writer: str, lease: int | None) -> Control:
        return replace(claimed(control, writer, lease), attempt=control.attempt)

    return planted(Control, "claimed", uncounted)


def leases_that_nobody_respects() -> AbstractContextManager[Any]:
    return planted(Control, "lease_is_live", always(False))


def writers_that_share_a_token() -> AbstractContextManager[Any]:
    return planted(workflow.admission, "new_writer", lambda: "same")


def locks_that_do_not_lock() -> AbstractContextManager[Any]:
    return planted(BatonLock, "acquire", always(True))


def failures_that_are_not_recorded() -> AbstractContextManager[Any]:
    return planted(RunStore, "fail", always(False))


def runs_that_are_never_due() -> AbstractContextManager[Any]:
    entry_of = workflow.store.entry_of
    return planted(workflow.store, "entry_of", lambda *given, **more: replace(entry_of(*given, **more), due=None))


def memos_that_are_not_looked_up() -> AbstractContextManager[Any]:
    return planted(RunStore, "has", always(False))


def answers_that_are_not_recorded() -> AbstractContextManager[Any]:
    consume: Any = workflow.context._consume  # pyright: ignore[reportPrivateUsage]

    def forgetful(step: Any, *given: Any) -> Any:
        answer = consume(step, *given)
        step.unsaved.clear()
        return answer

    return planted(workflow.context, "_consume", forgetful)


CONTENDED: list[tuple[Plant, str]] = [
    (careless_store, "two people answer"),
    (attempts_that_stand_still, "two recoveries of a failure"),
    (leases_that_nobody_respects, "a slow owner and a takeover"),
    (writers_that_share_a_token, "two recoveries of a failure"),
    (locks_that_do_not_lock, "a renewed owner and a takeover"),
    (failures_that_are_not_recorded, "two runs that fail once"),
    (runs_that_are_never_due, "two plain runs"),
]
CRASHED: list[Plant] = [memos_that_are_not_looked_up, answers_that_are_not_recorded]


@pytest.mark.parametrize(("plant", "name"), [pytest.param(*case, id=case[0].__name__) for case in CONTENDED])
def test_a_planted_fault_is_found_by_walking(plant: Plant, name: str) -> None:
    with plant():
        _, finding = interleavings(SCENARIOS[name], 1)
    assert finding is not None


@pytest.mark.parametrize("plant", CRASHED)
def test_a_planted_fault_is_found_by_crashing(plant: Plant) -> None:
    expected = driven(partial(journey), Recovery.RESUME)
    with plant():
        struck = (driven(partial(journey), Recovery.RESUME, {place: Fault.CRASH_AFTER}) for place in range(expected.operations))
        assert any(verdict(universe, expected) for universe in struck)


def test_a_finding_is_played_again_by_its_schedule() -> None:
    scenario = SCENARIOS["a renewed owner and a takeover"]
    with locks_that_do_not_lock():
        _, finding = interleavings(scenario, 1)
        assert finding is not None
        again = replayed(scenario, " > ".join(finding.schedule))
    assert again is not None
    assert again.schedule == finding.schedule
    assert again.what == finding.what
    assert replayed(scenario, " > ".join(finding.schedule)) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_gives_the_same_schedule_each_time(seed: int) -> None:
    with runs_that_are_never_due():
        first, again = (random_schedule(SCENARIOS["two ignitions and a run"], seed) for _ in range(2))
    assert first is not None
    assert again is not None
    assert first.schedule == again.schedule
