"""A failed run is tried again by policy, and a run that takes one worker after another down with it is parked."""

import asyncio
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow import (
    Event,
    ExecutionRequest,
    RetryPolicy,
    RunStalledError,
    SerializationError,
    StartEvent,
    StopEvent,
    WorkflowEngine,
    WorkflowError,
    WorkflowRefusedError,
    WorkflowState,
    WorkflowStatus,
    await_event,
)
from workflow.expiring import expire_lease
from workflow.trials import MAX_INTERRUPTIONS, Trials

EXACT = RetryPolicy(attempts=3, first_delay=10, jitter=0)


class Next(Event):
    pass


class RefusedForGoodError(Exception):
    permanent = True


@pytest.fixture
def failing(define):
    """Return what makes a workflow of two steps; each raises what stands in its list, one error at each call."""

    def make(first: list[BaseException], second: list[BaseException] | None = None, **options):
        def begin(event: StartEvent, state: WorkflowState) -> Next:
            if first:
                raise first.pop(0)
            return Next()

        def end(event: Next, state: WorkflowState) -> StopEvent:
            if second:
                raise second.pop(0)
            return StopEvent("done")

        return define(begin, end, **options)

    return make


def fail(workflow) -> None:
    """Let the workflow run into an error."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - what is raised is the test's own
        workflow.run(ExecutionRequest.resume() if workflow.inspect() else None)
    assert not isinstance(caught.value, WorkflowError), caught.value


def due(store) -> float | None:
    """When the run is due."""
    return store.entry("w").due


def test_without_a_policy_a_failed_run_is_due_never(failing, store) -> None:
    fail(failing([ValueError("x")]))
    assert due(store) is None


def test_a_failed_run_is_due_again_after_growing_delays_until_its_tries_are_used_up(failing, store, clock) -> None:
    workflow = failing([ValueError("x")] * 3, retry=EXACT)
    delays = []
    for _ in range(3):
        fail(workflow)
        at = due(store)
        delays.append(None if at is None else at - clock.now().timestamp())
    assert delays == [10, 20, None]


def test_the_snapshot_says_when_it_is_tried_again(failing, clock) -> None:
    workflow = failing([ValueError("x")], retry=EXACT)
    fail(workflow)
    assert workflow.inspect().failure.retry_at == clock.now() + dt.timedelta(seconds=10)


def test_a_committed_step_begins_the_count_anew(failing, store, clock) -> None:
    workflow = failing([ValueError("x")] * 2, [ValueError("y")], retry=EXACT)
    for _ in range(3):
        fail(workflow)
    assert due(store) == clock.now().timestamp() + 10


def test_a_person_who_tries_an_exhausted_run_again_gives_it_all_its_tries(failing, store, clock) -> None:
    workflow = failing([ValueError("x")] * 4, retry=EXACT)
    for _ in range(4):
        fail(workflow)
    assert due(store) == clock.now().timestamp() + 10


@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (RefusedForGoodError(), EXACT),
        (KeyError("k"), RetryPolicy(permanent=(LookupError,))),
        (SerializationError("cannot be kept"), EXACT),
    ],
)
def test_a_permanent_error_is_not_tried_again(error, policy) -> None:
    assert policy.next_try(error, Trials(failures=1, since=0), 0) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_what_is_stopped_from_outside_is_due_at_once_and_counts_as_no_failure(failing, store, clock, error) -> None:
    workflow = failing([error, ValueError("x")], retry=EXACT)
    fail(workflow)
    assert due(store) == clock.now().timestamp()
    fail(workflow)
    assert due(store) == clock.now().timestamp() + 10


def test_a_node_that_exits_has_failed(failing, store, clock) -> None:
    workflow = failing([SystemExit(1)] * 3, retry=EXACT)
    delays = []
    for _ in range(3):
        fail(workflow)
        at = due(store)
        delays.append(None if at is None else at - clock.now().timestamp())
    assert delays == [10, 20, None]


def test_a_run_that_is_stopped_again_and_again_is_not_tried_for_ever(failing, store) -> None:
    workflow = failing([KeyboardInterrupt()] * 50, retry=EXACT)
    tries = 0
    while tries == 0 or due(store) is not None:
        fail(workflow)
        tries += 1
    assert tries == MAX_INTERRUPTIONS + 1


def test_after_the_total_time_there_is_no_further_try(failing, store, clock) -> None:
    workflow = failing([ValueError("x")] * 3, retry=RetryPolicy(attempts=9, first_delay=10, jitter=0, total=25))
    fail(workflow)
    assert due(store) is not None
    clock.advance(10)
    fail(workflow)
    assert due(store) is None


@given(
    st.integers(1, 10**6),
    st.floats(0, 1),
    st.builds(
        RetryPolicy,
        attempts=st.just(10**7),
        first_delay=st.floats(0, 1e6),
        factor=st.floats(1, 100),
        max_delay=st.floats(0, 1e6),
        jitter=st.floats(0, 1),
    ),
)
def test_a_delay_is_never_negative_nor_above_its_cap(failures, chance, policy) -> None:
    at = policy.next_try(ValueError(), Trials(failures=failures, since=0), 0, chance=lambda: chance)
    assert at is not None
    assert 0 <= at <= policy.max_delay


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"first_delay": -1}, {"factor": 0.5}, {"jitter": 2}, {"max_delay": -1}])
def test_a_policy_that_cannot_be_followed_is_refused(wrong) -> None:
    with pytest.raises(WorkflowError, match="cannot be followed"):
        RetryPolicy(**wrong)


def test_a_policy_counts_failures_around_a_wait_by_themselves(define, store, clock) -> None:
    broken = [ValueError("x"), ValueError("y")]

    def begin(event: StartEvent, state: WorkflowState) -> StopEvent:
        if len(broken) == 2:
            raise broken.pop()
        await_event("go")
        raise broken[0]

    workflow = define(begin, retry=EXACT)
    fail(workflow)
    assert workflow.run(ExecutionRequest.resume()).is_interrupted()
    with pytest.raises(ValueError, match="x"):
        workflow.run(ExecutionRequest.signal("go"))
    assert due(store) == clock.now().timestamp() + 10


# --- workers that are lost ----------------------------------------------------------------------------------------------------


@pytest.fixture
def deadly(define, store, recording, inner, clock):
    """Return what lets a worker die inside the first or the second step of a run, a lease at a time."""

    def lose(step: int, **options) -> None:
        dying = recording(inner)

        def kill() -> None:
            dying.die()
            raise KeyboardInterrupt

        def begin(event: StartEvent, state: WorkflowState) -> Next:
            if step == 0:
                kill()
            return Next()

        def end(event: Next, state: WorkflowState) -> StopEvent:
            if step == 1:
                kill()
            return StopEvent("done")

        workflow = define(begin, end, persistence=dying, lease_timeout=60, max_takeovers=2, **options)
        workflow.run(ExecutionRequest.resume() if workflow.inspect() else None)

    def lost(step: int, **options) -> None:
        with pytest.raises(KeyboardInterrupt):
            lose(step, **options)
        clock.advance(61)

    lost.survive = lambda **options: lose(2, **options)
    return lost


def test_at_the_limit_of_takeovers_the_run_is_parked_and_due_never(deadly, store, define) -> None:
    for _ in range(3):
        deadly(0)
    with pytest.raises(RunStalledError, match="3 workers were lost"):
        deadly.survive()
    snapshot = define().inspect()
    assert (snapshot.status, snapshot.failure.error, due(store)) == (WorkflowStatus.FAILED, "RunStalledError", None)


def test_a_parked_run_goes_on_when_a_person_continues_it(deadly, define) -> None:
    for _ in range(3):
        deadly(0)
    with pytest.raises(RunStalledError):
        deadly.survive()
    deadly(0)
    deadly.survive()
    assert define().inspect() is None


def test_a_lease_that_was_given_back_is_no_loss(deadly, define, store, inner, clock) -> None:
    def begin(event: StartEvent, state: WorkflowState) -> Next:
        run = WorkflowEngine(inner, clock=clock).inspect("w")
        assert expire_lease(inner, "w", run.run_id, run.execution_attempt, given_back=True, clock=clock)
        return Next()

    for _ in range(5):
        stopping = define(begin, lease_timeout=60, max_takeovers=2)
        with pytest.raises(WorkflowRefusedError):
            stopping.run(ExecutionRequest.resume() if stopping.inspect() else None)
        clock.advance(1)
    deadly.survive()
    assert define().inspect() is None


def test_a_step_between_them_keeps_lost_workers_from_adding_up(deadly, define) -> None:
    deadly(0)
    deadly(0)
    deadly(1)
    deadly(1)
    deadly.survive()
    assert define().inspect() is None


def test_parking_loses_to_whoever_was_faster(deadly, store, define, clock) -> None:
    for _ in range(3):
        deadly(0)
    rival = define(lambda: None, lease_timeout=60)._store()
    rival.load()

    def overtake(call) -> None:
        if call.name == "write_if_unchanged" and rival.control.attempt == 3:
            store.before = lambda call: None
            assert rival.replace(rival.control.claimed("rival", int(clock.now().timestamp()) + 60))

    store.before = overtake
    with pytest.raises(WorkflowRefusedError):
        define(max_takeovers=2, lease_timeout=60).run(ExecutionRequest.resume())
    assert define().inspect().status is WorkflowStatus.RUNNING


def test_trials_are_kept_in_control_only_while_there_are_any(failing, store) -> None:
    workflow = failing([ValueError("x")], retry=EXACT)
    fail(workflow)
    assert b'"trials"' in store.load("w")["__control"]
    workflow.run(ExecutionRequest.start(recover_failed=True))
    assert b'"trials"' not in store.writes[-2].records["__control"]
