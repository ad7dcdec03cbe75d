"""What people read when a run needs them."""

from bus import Signal
from workers import Settings
from workers.signals.alerts import alert_text

RUN = {"workflow_id": "order:1", "run_id": "run_1", "name": "orders", "attempt": 3, "at": "2026-11-30T07:00:00+00:00"}


def test_a_failed_run_says_why_and_what_to_type():
    payload = {**RUN, "step": "ship", "error": "ValueError", "message": "no van"}
    title, body = alert_text(Signal("i", "workflow.failed", payload))
    assert title == "order:1 failed"
    assert body.splitlines() == [
        "ValueError: no van",
        "Step ship, attempt 3, at 2026-11-30T07:00:00+00:00.",
        "It is not tried again by itself: `jarvis runs retry order:1` takes it up where it failed.",
    ]


def test_a_stalled_run_says_what_to_type_for_an_id_that_needs_quotes():
    title, body = alert_text(Signal("i", "workflow.stalled", {**RUN, "workflow_id": "order 1"}))
    assert title == "order 1 stands still"
    assert body == "Look into it; `jarvis runs retry 'order 1'` has it tried again."


def test_a_run_that_waits_for_a_person_shows_its_question():
    payload = {**RUN, "waits_for": {"interruptId": 1, "message": "pay?"}}
    assert alert_text(Signal("i", "workflow.suspended", payload)) == (
        "order:1 waits for you",
        "pay?\n`jarvis runs show order:1` shows the question, and how to answer it.",
    )


def test_failed_and_stalled_runs_are_alerts_unless_the_settings_say_otherwise():
    assert Settings.load().alerts.topics == ("agent.heartbeat.stale", "workflow.failed", "workflow.stalled")
