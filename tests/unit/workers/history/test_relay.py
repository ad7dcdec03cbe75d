"""The relay: whatever dies when, no line is lost, none is there twice, and people are told once."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from bus import BusUnreachableError
from persistence import UnreachableError
from workers.history import relay as relaying
from workers.history.telling import signal_of
from workflow import (
    ApprovalRequest,
    Event,
    ExecutionRequest,
    RetryPolicy,
    SleepUntilRequest,
    StopEvent,
    WaitForEventRequest,
    Workflow,
    WorkflowState,
)


class Order(Event):
    pass


def story(office: Any) -> list[Any]:
    """Lines of two runs, with something to tell of each."""
    one, two = ("order:1", "run_1"), ("order:2", "run_2")
    return [
        office.line("started", *one),
        office.line("started", *two),
        office.line("failed", *one, error="E", message="m"),
        office.line("suspended", *two, waits_for=ApprovalRequest("bread?").with_id(1).to_json()),
        office.line("claimed", *one, attempt=2),
        office.line("stalled", *one, attempt=3, error="RunStalledError", message="gone"),
    ]


TOLD = [
    ("workflow.failed", "order:1/run_1/1/workflow.failed"),
    ("workflow.suspended", "order:2/run_2/1/workflow.suspended"),
    ("workflow.stalled", "order:1/run_1/3/workflow.stalled"),
]


def check(office: Any, lines: list[Any]) -> None:
    for workflow_id in ("order:1", "order:2"):
        [run] = office.archive.runs_of(workflow_id)
        assert office.archive.lines(run) == [line for line in lines if line.workflow_id == workflow_id]
    assert len(office.runs()) == 2
    assert sorted(office.signals()) == sorted(TOLD)


def test_what_is_told_reaches_archive_and_bus(office: Any) -> None:
    lines = story(office)
    office.tell(*lines)
    assert office.relay().pass_on()
    check(office, lines)


def test_a_real_run_reaches_the_archive_when_its_partition_has_gone(office: Any) -> None:
    failures = [ValueError("cold oven")]

    def bake(event: Order, state: WorkflowState) -> StopEvent:
        if failures:
            raise failures.pop()
        return StopEvent()

    workflow = Workflow("bread:1", nodes=[bake], start_event=Order(), persistence=office.store, clock=office.clock)
    workflow = workflow.reconfigure(history=True, name="bread", retry=RetryPolicy(first_delay=0))
    with pytest.raises(ValueError, match="cold oven"):
        workflow.run()
    workflow.run(ExecutionRequest.resume())
    office.relay().pass_on()
    [run] = office.archive.runs_of("bread:1")
    assert office.store.load("bread:1") == {}
    assert (run.name, run.status, run.attempts, run.message) == ("bread", "completed", 2, "cold oven")
    assert office.kinds(run) == ["started", "failed", "claimed", "completed"]
    assert office.signals() == []


@pytest.mark.parametrize("page", [1, 2, 500])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_relay_that_dies_around_any_call_loses_nothing_and_repeats_nothing(
    memory_office: Any, struck: Any, process_death: Any, monkeypatch: pytest.MonkeyPatch, moment: str, page: int
) -> None:
    monkeypatch.setattr(relaying, "PAGE", page)
    _die_at_every_call(memory_office, struck, process_death, moment)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_same_on_redis(redis_office: Any, struck: Any, process_death: Any, moment: str) -> None:
    _die_at_every_call(redis_office, struck, process_death, moment)


def _die_at_every_call(new_office: Any, struck: Any, process_death: Any, moment: str) -> None:
    at = 0
    while True:
        at += 1
        office = new_office()
        lines = story(office)
        office.tell(*lines)
        counter = [0]
        parts = [struck(part, counter) for part in (office.store, office.kept, office.bus)]
        for part in parts:
            part.die_at = (at, moment)
        try:
            office.relay(*parts).pass_on()
        except process_death:
            office.relay().pass_on()
            check(office, lines)
        else:
            break  # every call has been struck once
    assert at > 10


def test_two_relays_at_any_interleaving_of_their_calls_add_each_line_once(
    memory_office: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one relay is held at one of its calls, another one passes everything on, and more is told meanwhile."""
    monkeypatch.setattr(relaying, "PAGE", 3)
    held_at = 0
    while True:
        held_at += 1
        office = memory_office()
        lines = story(office)
        office.tell(*lines[:2])
        met = _Meeting(office, held_at, lines[2:])
        office.relay(met.on(office.store), met.on(office.kept), met.on(office.bus)).pass_on()
        if not met.happened:
            break
        office.relay().pass_on()
        check(office, lines)
    assert held_at > 8


class _Meeting:
    """At the n-th call of one relay the rest is told, and another relay passes all of it on."""

    def __init__(self, office: Any, at: int, rest: list[Any]) -> None:
        self._office, self._at, self._rest = office, at, rest
        self._calls = 0
        self.happened = False

    def on(self, inner: Any) -> Any:
        meeting = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                def passed_on(*args: Any, **options: Any) -> Any:
                    meeting.called()
                    return getattr(inner, name)(*args, **options)

                return passed_on

        return Watched()

    def called(self) -> None:
        self._calls += 1
        if self._calls == self._at:
            self.happened = True
            self._office.tell(*self._rest)
            self._office.relay().pass_on()


def test_a_damaged_line_is_named_once_and_passed_over(office: Any) -> None:
    office.tell(office.line("started"))
    office.write(b"\xff no line", "order:1")
    office.tell(office.line("completed"))
    with capture_logs() as logs:
        relay = office.relay()
        relay.run_patiently()
        relay.run_patiently()
    assert [line["log_level"] for line in logs] == ["error"]
    assert [office.kinds(run) for run in office.runs()] == [["started", "completed"]]


def test_a_run_whose_history_is_damaged_keeps_no_other_from_the_archive(office: Any) -> None:
    office.tell(office.line("started"))
    office.relay().pass_on()
    [entry] = office.archive.page(None, 10)
    office.kept.write_if_unchanged(entry.partition, "__run", office.kept.get(entry.partition, "__run"), {"__run": b"[]"})
    office.tell(office.line("failed"), office.line("started", "order:2", "run_2"))
    with capture_logs() as logs:
        office.relay().run_patiently()
    assert len(logs) == 1
    assert entry.partition in logs[0]["damage"]
    assert [run.workflow_id for run in office.archive.runs_of("order:2")] == ["order:2"]
    assert office.signals() == [("workflow.failed", "order:1/run_1/1/workflow.failed")]


@pytest.mark.parametrize("trouble", [UnreachableError("no answer"), BusUnreachableError("no answer")])
def test_trouble_is_said_once_and_waited_out(office: Any, trouble: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    office.tell(*story(office))
    answers = iter([trouble, trouble])
    publish = office.bus.publish

    def troubled(*args: Any, **options: Any) -> Any:
        for refusal in answers:
            raise refusal
        return publish(*args, **options)

    monkeypatch.setattr(office.bus, "publish", troubled)
    relay = office.relay()
    with capture_logs() as logs:
        for _ in range(3):
            relay.run_patiently()
    assert [line["log_level"] for line in logs] == ["warning"]
    check(office, story(office))


def test_a_wait_that_no_signal_can_show_is_told_without_what_it_shows(office: Any) -> None:
    shown = {"interruptId": 1, "type": "wait_for_event", "eventName": "approval", "text": "x" * 300_000}
    office.tell(office.line("suspended", waits_for=shown))
    office.relay().pass_on()
    [signal] = office.bus.read()
    assert (signal.topic, "waits_for" in signal.payload) == ("workflow.suspended", False)


class Vote(WaitForEventRequest):
    question: str

    def metadata(self) -> dict[str, Any]:
        return {"question": self.question}


def test_people_are_told_of_what_only_they_can_answer(office: Any) -> None:
    def told(request: Any) -> bool:
        return signal_of(office.line("suspended", waits_for=request.with_id(1).to_json())) is not None

    assert told(ApprovalRequest("bread?"))
    assert told(Vote("poll", question="rye?"))
    assert not told(WaitForEventRequest("flour.delivered", expires_at=office.clock.now()))
    assert not told(SleepUntilRequest(office.clock.now()))
    assert signal_of(office.line("suspended")) is None


def test_a_failure_that_is_tried_again_by_itself_alarms_nobody(office: Any) -> None:
    assert signal_of(office.line("failed", retry_at=1.0)) is None
    assert signal_of(office.line("failed")) is not None


def test_a_signal_says_what_failed_and_its_id_fits_the_bus(office: Any) -> None:
    long = "ü" * 255
    office.tell(office.line("failed", long, step="pay", error="E", message="half \ud800"))
    office.relay().pass_on()
    [signal] = office.bus.read()
    assert dict(signal.payload) == {
        "workflow_id": long,
        "run_id": "run_1",
        "name": "orders",
        "attempt": 1,
        "at": "2026-11-30T07:00:00+00:00",
        "step": "pay",
        "error": "E",
        "message": "half ?",
    }


def test_a_pass_is_bounded_and_the_next_one_goes_on(office: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaying, "PAGE", 2)
    office.tell(*office.many(10))
    relay = office.relay()
    assert not relay.pass_on(pages=2)
    assert len(office.runs()) == 4
    assert relay.pass_on()
    assert len(office.runs()) == 10


def test_a_damaged_place_in_the_log_is_explained(office: Any) -> None:
    assert office.archive.move(None, "nonsense")
    office.tell(office.line("started"))
    with capture_logs() as logs:
        office.relay().run_patiently()
    assert "is damaged" in logs[0]["trouble"]
