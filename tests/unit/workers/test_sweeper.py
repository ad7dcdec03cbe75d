"""The sweeper, on a store in memory with hints that are only noted."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from persistence import InMemoryPersistence, UnreachableError
from workers.sweeper import BATCH, Sweeper
from workflow import Event, ManualClock, Node, StopEvent, Workflow, WorkflowState
from workflow.index import HINT_DELAY, MAX_HINT_DELAY, make_due

START = dt.datetime(2026, 11, 30, 7, 0, tzinfo=dt.UTC)


class Go(Event):
    pass


class Work(Node):
    def __call__(self, event: Go, state: WorkflowState) -> StopEvent:
        return StopEvent("done")


class NotedHints:
    def __init__(self) -> None:
        self.sent: list[str] = []
        self.is_heard = True

    def send(self, name: str, workflow_id: str, run_id: str) -> bool:
        self.sent.append(workflow_id)
        return self.is_heard


class Yard:
    """A store, a clock, and a sweeper that looks by it."""

    def __init__(self) -> None:
        self.store = InMemoryPersistence()
        self.clock = ManualClock(START)
        self.hints = NotedHints()
        self.sweeper = self.another()

    def another(self) -> Sweeper:
        return Sweeper(self.store, self.hints, every=1, now=lambda: self.clock.now().timestamp())

    def workflow(self, workflow_id: str, **options: object) -> Workflow:
        return Workflow(workflow_id, nodes=[Work()], start_event=Go(), persistence=self.store, clock=self.clock, **options)

    def damage(self, workflow_id: str, control: bytes) -> None:
        held = self.store.get(workflow_id, "__control")
        assert held is not None
        assert self.store.write_if_unchanged(workflow_id, "__control", held, {"__control": control})


@pytest.fixture
def yard() -> Iterator[Yard]:
    return Yard()


def test_a_start_is_hinted_when_its_first_hint_should_have_arrived(yard: Yard) -> None:
    yard.workflow("a").ignite()
    assert yard.sweeper.sweep() == 0

    yard.clock.advance(HINT_DELAY)

    assert yard.sweeper.sweep() == 1
    assert yard.hints.sent == ["a"]


def test_hints_that_move_nothing_come_at_growing_distances(yard: Yard) -> None:
    yard.workflow("a").ignite()
    yard.clock.advance(HINT_DELAY)
    seconds = []
    for second in range(400):
        if yard.sweeper.sweep():
            seconds.append(second)
        yard.clock.advance(1)

    distances = [later - earlier for earlier, later in pairwise(seconds)]

    assert distances == [5, 10, 20, 40, *[MAX_HINT_DELAY] * (len(distances) - 4)]


def test_a_run_that_was_asked_for_anew_is_hinted_as_soon_as_a_new_one(yard: Yard) -> None:
    """It waits for a slot, round after round: its hints arrived, so that one which is lost is sent again soon."""
    run_id = yard.workflow("a").ignite()
    for _ in range(5):
        yard.clock.advance(MAX_HINT_DELAY)
        assert yard.sweeper.sweep() == 1
        make_due(yard.store, "a", run_id, yard.clock.now().timestamp())

    assert yard.sweeper.sweep() == 1
    yard.clock.advance(HINT_DELAY)

    assert yard.sweeper.sweep() == 1


def test_while_the_broker_takes_no_hint_the_others_are_left_as_they_are(yard: Yard) -> None:
    """Else each would be put off for longer and longer by hints that nobody heard, and each look would take minutes."""
    for name in "abc":
        yard.workflow(name).ignite()
    yard.clock.advance(HINT_DELAY)
    yard.hints.is_heard = False
    for _ in range(3):
        yard.sweeper.sweep()
        yard.clock.advance(1)
    assert len(yard.hints.sent) == 3

    yard.hints.is_heard = True
    yard.clock.advance(HINT_DELAY)
    yard.sweeper.sweep()

    assert sorted(yard.hints.sent[3:]) == ["a", "b", "c"]


def test_two_sweepers_send_one_hint(yard: Yard) -> None:
    yard.workflow("a").ignite()
    yard.clock.advance(HINT_DELAY)

    assert yard.sweeper.sweep() + yard.another().sweep() == 1


def test_a_kept_result_is_forgotten_when_its_time_is_over(yard: Yard) -> None:
    yard.workflow("a", retain_for=60).run()
    yard.clock.advance(59)
    assert yard.sweeper.sweep() == 0

    yard.clock.advance(1)

    assert yard.sweeper.sweep() == 1
    assert yard.store.load("a") == {}


@pytest.mark.parametrize("control", [b"not json", b"[1]", b'{"v":99}'])
def test_a_damaged_run_keeps_the_sweeper_from_no_other_and_is_named_once(yard: Yard, control: bytes) -> None:
    yard.workflow("damaged", retain_for=1).run()
    yard.workflow("sound").ignite()
    yard.damage("damaged", control)
    yard.clock.advance(HINT_DELAY)

    with capture_logs() as logs:
        yard.sweeper.sweep()
        yard.sweeper.sweep()

    assert yard.hints.sent == ["sound"]
    assert [line["workflow_id"] for line in logs if line["log_level"] == "error"] == ["damaged"]


def test_a_store_that_does_not_answer_is_said_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def due(before: float, limit: int) -> list[object]:
        nonlocal looks
        looks += 1
        if looks == 3:
            yard.sweeper.stop()
        raise UnreachableError("no answer")

    monkeypatch.setattr(yard.store, "due", due)
    monkeypatch.setattr(yard.sweeper, "_every", 0)

    with capture_logs() as logs:
        yard.sweeper.run()

    assert looks == 3
    assert len(logs) == 1


def test_a_crowd_of_damaged_runs_does_not_stand_before_the_others(yard: Yard) -> None:
    for number in range(BATCH):
        yard.workflow(f"damaged-{number:03}").ignite()
        yard.damage(f"damaged-{number:03}", b"\xff")
        held = yard.store.entry(f"damaged-{number:03}")
        yard.store.write_if_unchanged(held.partition, "__control", b"\xff", {}, index=replace(held, summary="no summary"))
    yard.clock.advance(1)
    yard.workflow("good").ignite()
    yard.clock.advance(HINT_DELAY)
    yard.sweeper.sweep()
    yard.sweeper.sweep()
    assert yard.hints.sent == ["good"]
