"""The gate takes what a workflow is limited by, keeps it while the segment runs, and gives it back whatever happens."""

import threading

import pytest

from workers.errors import WorkersError
from workers.limits import Gate, InMemorySlots

ROLES = {"briefing": ("research",), "report": ("research", "operations")}


def gate(slots, *, workflows=None, roles=None, lease=30.0) -> Gate:
    return Gate(slots, workflows or {}, roles or {}, lambda name: ROLES.get(name, ()), lease=lease)


@pytest.fixture
def slots() -> InMemorySlots:
    return InMemorySlots()


def test_an_unlimited_workflow_passes_untouched() -> None:
    class Untouchable:
        def __getattr__(self, name: str):
            raise AssertionError(name)

    with gate(Untouchable(), workflows={"other": 1}).slot("briefing", "r1") as wait:
        assert wait is None


def test_the_slot_is_held_inside_and_free_afterwards(slots) -> None:
    limited = gate(slots, workflows={"briefing": 1})
    with limited.slot("briefing", "r1"), limited.slot("briefing", "r2") as wait:
        assert wait is not None
    with limited.slot("briefing", "r2") as wait:
        assert wait is None


def test_a_segment_that_raises_gives_its_slot_back(slots) -> None:
    limited = gate(slots, workflows={"briefing": 1})
    with pytest.raises(ValueError, match="x"), limited.slot("briefing", "r1"):
        raise ValueError("x")
    with limited.slot("briefing", "r2") as wait:
        assert wait is None


def test_workflows_that_use_a_role_share_its_slots(slots) -> None:
    limited = gate(slots, roles={"research": 1})
    with limited.slot("briefing", "r1"), limited.slot("report", "r2") as wait:
        assert wait is not None


def test_whoever_does_not_get_in_gives_nothing_back(slots) -> None:
    limited = gate(slots, workflows={"briefing": 1})
    with limited.slot("briefing", "r1"):
        with limited.slot("briefing", "r2"):
            pass
        with limited.slot("briefing", "r3") as wait:
            assert wait is not None


def test_a_long_segment_keeps_its_slot() -> None:
    kept = threading.Event()

    class Watched(InMemorySlots):
        calls = 0

        def take(self, limits, holder, lease):
            self.calls += 1
            if self.calls == 3:
                kept.set()
            return super().take(limits, holder, lease)

    with gate(Watched(), workflows={"briefing": 1}, lease=0.03).slot("briefing", "r1"):
        assert kept.wait(10)


def test_a_server_that_is_gone_does_not_end_a_segment_that_runs() -> None:
    tried = threading.Event()

    class Leaving(InMemorySlots):
        gone = False

        def take(self, limits, holder, lease):
            if self.gone:
                tried.set()
                raise WorkersError("gone")
            return super().take(limits, holder, lease)

        def give_back(self, limits, holder):
            raise WorkersError("gone")

    slots = Leaving()
    with gate(slots, workflows={"briefing": 1}, lease=0.03).slot("briefing", "r1"):
        slots.gone = True
        assert tried.wait(10)
