"""The history of runs: a line for each change, in the same write, kept when the run has gone."""

import pytest

from persistence import PersistenceError
from persistence.contract import LogEntry
from workflow import (
    Event,
    ExecutionRequest,
    RetryPolicy,
    StartEvent,
    StopEvent,
    WorkflowEngine,
    WorkflowState,
    await_event,
    memoize,
)
from workflow.history import HISTORY_LOG, Happened, HistoryLine, read_line, write_line


class Next(Event):
    pass


@pytest.fixture
def lines(inner):
    """Return what reads the history so far."""
    return lambda: [read_line(entry) for entry in inner.read_log(HISTORY_LOG)]


@pytest.fixture
def asking(define):
    """Return what makes a workflow that asks in its second step, and fails there once where it is told to."""

    def make(*errors: Exception, **options):
        failures = list(errors)

        def begin(event: StartEvent, state: WorkflowState) -> Next:
            memoize("m", lambda: 1)
            return Next()

        def end(event: Next, state: WorkflowState) -> StopEvent:
            answer = await_event("go")
            if failures:
                raise failures.pop()
            return StopEvent(answer)

        return define(begin, end, history=True, **options).reconfigure(name="asking")

    return make


def kinds(lines: list[HistoryLine]) -> list[str]:
    return [line.kind.value for line in lines]


def test_a_run_without_history_leaves_none(asking, lines) -> None:
    asking().reconfigure(history=False).run()
    assert lines() == []


def test_a_run_is_told_from_start_to_end_and_outlives_its_partition(asking, lines, clock, inner) -> None:
    workflow = asking(ValueError("broken"), retry=RetryPolicy(jitter=0, first_delay=7))
    workflow.run(ExecutionRequest.start(tag="t"))
    with pytest.raises(ValueError, match="broken"):
        workflow.run(ExecutionRequest.signal("go", 5))
    clock.advance(8)
    workflow.run(ExecutionRequest.resume())
    assert inner.load("w") == {}
    told = lines()
    assert kinds(told) == ["started", "step", "suspended", "claimed", "failed", "claimed", "completed"]
    assert {(line.workflow_id, line.name, line.tag) for line in told} == {("w", "asking", "t")}
    assert [line.attempt for line in told] == [1, 1, 1, 2, 2, 3, 3]
    assert told[1].step.endswith("begin-0")
    assert told[2].waits_for["interruptId"] == 1
    assert (told[4].error, told[4].message, told[4].retry_at) == ("ValueError", "broken", told[4].at + 7)
    assert told[-1].at == clock.now().timestamp()


def test_a_retained_run_is_told_completed_once_and_its_acknowledgement_is_not_told(asking, lines, inner) -> None:
    workflow = asking(retain_completion=True)
    workflow.run()
    state = workflow.run(ExecutionRequest.signal("go"))
    workflow.acknowledge(state.execution.run_id)
    assert kinds(lines()) == ["started", "step", "suspended", "claimed", "completed"]


def test_whoever_manages_the_run_without_its_class_tells_it_too(asking, lines, inner, clock) -> None:
    asking().run()
    WorkflowEngine(inner, clock=clock).cancel("w")
    asking().run()
    WorkflowEngine(inner, clock=clock).abandon("w")
    assert kinds(lines())[3:] == ["cancelled", "started", "step", "suspended", "abandoned"]


def test_a_superseded_run_is_told_abandoned(asking, define, lines) -> None:
    def broken(event: StartEvent, state: WorkflowState) -> Next:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        define(broken, history=True).run()
    asking().run(ExecutionRequest.start())
    assert kinds(lines()) == ["started", "failed", "abandoned", "started", "step", "suspended"]


def test_a_damaged_run_can_be_abandoned_untold(asking, lines, inner) -> None:
    asking().run()
    inner.write_if_unchanged("w", "__control", inner.get("w", "__control"), {"__ignition": b"\xff"})
    WorkflowEngine(inner).abandon("w")
    assert inner.load("w") == {}


def test_a_lost_reply_tells_nothing_twice(asking, store, lines) -> None:
    store.lose_reply_of(2)  # that of the first step
    with pytest.raises(PersistenceError):
        asking().run()
    assert kinds(lines()) == ["started", "step", "failed"]


def test_no_payload_state_or_result_is_told(define, inner) -> None:
    secret = "s3cret"

    def begin(event: StartEvent, state: WorkflowState) -> StopEvent:
        state["k"] = secret
        memoize("m", lambda: secret)
        return StopEvent(await_event("go"))

    workflow = define(begin, history=True)
    workflow.run()
    workflow.run(ExecutionRequest.signal("go", secret))
    assert len(inner.read_log(HISTORY_LOG)) == 4
    assert not any(secret.encode() in entry.data for entry in inner.read_log(HISTORY_LOG))


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b'{"v":2,"kind":"step"}', b'{"v":1,"kind":"odd"}', b'{"v":1,"kind":"step"}']
)
def test_a_line_that_is_none_is_an_error_that_names_its_place(data) -> None:
    with pytest.raises(PersistenceError, match=r"decoded|17"):
        read_line(LogEntry("17", data))


def test_a_line_comes_back_as_it_was() -> None:
    line = HistoryLine(Happened.FAILED, "w", "r", "n", 3, 0.5, 1.5, "t", "s-1", 0.25, "E", "m", 9.5, {"id": 1})
    assert read_line(LogEntry("1", write_line(line))) == line
