"""Processes die before and after every store operation, and replies are lost: what is recorded happens once, all the same.

The workflow has a loop, memos, two waits (one of them inside a memo) and a timer. After each death a new process recovers it.
"""

import contextlib
import datetime as dt
from collections import Counter
from typing import Any

import pytest

from persistence import Persistence, PersistenceError, UnreachableError
from workflow import (
    Event,
    ExecutionRequest,
    StartEvent,
    StopEvent,
    Workflow,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
    memoize,
    sleep_until,
)

LEASE = 60
ROUNDS = 2
MOMENTS = ("before", "after")


class Round(Event):
    number: int


class Rest(Event):
    pass


class World:
    """What the nodes do outside: effects by name, in every process there ever was."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.done: Counter[str] = Counter()

    def effect(self, name: str) -> int:
        self.done[name] += 1
        return self.done[name]

    def to_its_end(self, store: Any, **options: Any) -> WorkflowState:
        """Start a run in a new process and see it through."""
        workflow = self.workflow(store, **options)
        return drive(workflow, self.clock, workflow.run())

    def workflow(self, store: Any, **options: Any) -> Workflow:
        """The definition, as a new process makes it."""

        def begin(event: StartEvent, state: WorkflowState) -> Round:
            state["log"] = ["begun"]
            state["until"] = self.clock.now() + dt.timedelta(seconds=10 * LEASE)
            return Round(number=1)

        def work(event: Round, state: WorkflowState) -> Round | Rest:
            memoize("effect", lambda: self.effect(f"work {event.number}") and None)
            approved = await_event("approval") if event.number == 1 else "not asked"
            state["log"].append(f"round {event.number} {approved}")
            return Round(number=event.number + 1) if event.number < ROUNDS else Rest()

        def rest(event: Rest, state: WorkflowState) -> StopEvent:
            signed = memoize("signed", lambda: ["signed", await_event("signature"), self.effect("sign") and None])
            sleep_until(state["until"])
            memoize("last", lambda: self.effect("last") and None)
            state["log"].append(signed)
            return StopEvent(state["log"])

        return Workflow("w", nodes=[begin, work, rest], persistence=store, clock=self.clock, **options)


EFFECTS = ["work 1", "work 2", "sign", "last"]
MEMOS = {"work-1::effect": "work 1", "work-2::effect": "work 2", "rest-3::signed": "sign", "rest-3::last": "last"}
"""The effect inside each memo."""
EXPECTED = ["begun", "round 1 yes", "round 2 not asked", ["signed", "me", None]]
ANSWERS = {"approval": "yes", "signature": "me"}


def drive(workflow: Workflow, clock: Any, state: WorkflowState) -> WorkflowState:
    """Give the run whatever it waits for, until it has ended."""
    while state.is_interrupted():
        request = state.interrupt_request
        name = getattr(request, "event_name", None)
        if name is None:
            clock.advance(20 * LEASE)
            state = workflow.run(ExecutionRequest.resume())
        else:
            state = workflow.run(ExecutionRequest.signal(name, ANSWERS[name]))
    return state


def recover(workflow: Workflow, clock: Any) -> WorkflowState | None:
    """Continue what a dead process left, as an operator or a sweeper would. None when its run has ended and is gone."""
    snapshot = workflow.inspect()
    if snapshot is None:
        return None
    if snapshot.status is WorkflowStatus.RUNNING:
        clock.advance(LEASE + 1)
    return workflow.run(ExecutionRequest.resume())


def operations_of_a_quiet_run(recording: Any, inner: Any, clock: Any, options: dict[str, Any]) -> int:
    """How many store operations an undisturbed run makes, answers included; it is checked on the way."""
    world, store = World(clock), recording(inner)
    state = world.to_its_end(store, **options)
    assert state.execution.result == EXPECTED
    assert world.done == Counter(EFFECTS)
    if options.get("retain_completion"):
        world.workflow(inner).acknowledge(state.execution.run_id)
    return len(store.calls)


SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "memory, no lease": ("memory", {}),
    "memory, lease": ("memory", {"lease_timeout": LEASE}),
    "memory, retained": ("memory", {"lease_timeout": LEASE, "retain_completion": True}),
    "fakeredis, lease": ("fakeredis", {"lease_timeout": LEASE}),
}
"""The store, and how the workflow is defined."""


@pytest.fixture(params=SETTINGS)
def setting(request) -> tuple[str, dict[str, Any]]:
    """Return each setting."""
    return SETTINGS[request.param]


@pytest.fixture
def inner(setting, empty_store) -> Persistence:
    """Return the store of the setting."""
    return empty_store(setting[0])


@pytest.fixture
def options(setting) -> dict[str, Any]:
    """Return the workflow's arguments in the setting."""
    return {"lease_renewal": False, **setting[1]}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_death_around_any_store_operation_repeats_no_recorded_effect(
    inner, recording, clock, process_death, options, moment
) -> None:
    total = operations_of_a_quiet_run(recording, inner, clock, options)
    assert total > 12
    for number in range(total):
        world, dying = World(clock), recording(inner)
        dying.die_at(number, moment)
        with pytest.raises(process_death):
            world.to_its_end(dying, **options)
        check_recovery(world, recording(inner), clock, options, (dying.calls[number], moment == "after"))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_second_death_during_the_recovery_changes_nothing(memory, recording, clock, process_death, moment) -> None:
    """Each pair of a first death and a second one in the process that recovers."""
    options = {"lease_timeout": LEASE, "lease_renewal": False, "retain_completion": True}
    total = operations_of_a_quiet_run(recording, memory.inner, clock, options)
    for first in range(1, total, 2):
        for second in range(8):
            world, dying, again = World(clock), recording(memory.inner), recording(memory.inner)
            dying.die_at(first, "after")
            with pytest.raises(process_death):
                world.to_its_end(dying, **options)
            again.die_at(second, moment)
            with contextlib.suppress(process_death):
                workflow = world.workflow(again, **options)
                recovered = recover(workflow, clock)
                assert recovered is not None
                drive(workflow, clock, recovered)
            struck = [(call, moment == "after") for call in again.calls[second : second + 1]]
            check_recovery(world, recording(memory.inner), clock, options, (dying.calls[first], True), *struck)


def test_a_lost_reply_is_neither_a_false_success_nor_a_repeated_effect(inner, recording, clock, options) -> None:
    """The store settles lost replies itself where it can; where it cannot, the engine sees an error after the effect."""
    total = operations_of_a_quiet_run(recording, inner, clock, options)
    for number in range(total):
        world, losing = World(clock), recording(inner)
        losing.lose_reply_of(number)
        with pytest.raises(UnreachableError):
            world.to_its_end(losing, **options)
        check_recovery(world, recording(inner), clock, options, (losing.calls[number], True))


def test_an_operation_that_fails_without_effect_leaves_a_run_that_goes_on(inner, recording, clock, options) -> None:
    total = operations_of_a_quiet_run(recording, inner, clock, options)
    for number in range(total):
        world, failing = World(clock), recording(inner)

        def fail(call: Any, number: int = number) -> None:
            if call.number == number:
                raise PersistenceError("disk full")

        failing.before = fail
        with pytest.raises(PersistenceError, match="disk full"):
            world.to_its_end(failing, **options)
        check_recovery(world, recording(inner), clock, options, (failing.calls[number], False))


def check_recovery(world: World, store: Any, clock: Any, options: dict[str, Any], *struck: tuple[Any, bool]) -> None:
    """Recover, and compare with the quiet run.

    ``struck`` holds the calls at which something happened, and whether each had taken effect. An effect may have been repeated
    only when its own memo was among those that had not.
    """
    workflow = world.workflow(store, **options)
    recovered = recover(workflow, clock)
    if recovered is None:
        [(call, effective)] = struck
        assert call.name == ("delete_if_unchanged" if effective else "initialize_if_absent")
        recovered = None if effective else workflow.run()
    if recovered is not None:
        assert drive(workflow, clock, recovered).execution.result == EXPECTED
        if options.get("retain_completion"):
            workflow.acknowledge(recovered.execution.run_id)
    assert workflow.inspect() is None
    assert store.find() == []
    assert world.done == Counter(EFFECTS) + Counter(
        MEMOS[memo] for call, effective in struck for memo in memos_of(call) if not effective
    )


def memos_of(call: Any) -> list[str]:
    """Which memos a call wrote, by step and name."""
    memos = [key.rpartition(".")[2] for key in call.records if "::" in key and "__answer" not in key]
    assert set(memos) <= set(MEMOS)
    return memos


def test_a_store_that_never_answers_is_an_error_of_the_store_and_no_refusal(inner, recording, clock) -> None:
    dead = recording(inner)
    dead.die()
    workflow = World(clock).workflow(dead)
    for call in (
        workflow.run,
        workflow.inspect,
        workflow.abandon,
        workflow.ignite,
        lambda: workflow.run(ExecutionRequest.resume()),
    ):
        with pytest.raises(UnreachableError):
            call()
    assert not issubclass(UnreachableError, WorkflowRefusedError)
