"""Cases from the field: values that change on their way through the store, runs that stand for ever or are declared dead."""

import signal
import time
from typing import Any

import pytest

from workflow import WorkflowStatus
from workflow.index import RunSummary

pytestmark = pytest.mark.processes

MODULES = "workers.definitions,scripted_work,field_work"
LEASE = 3
"""Seconds of lease of the runs that are held."""


@pytest.fixture
def work(make_work: Any, make_server: Any) -> Any:
    return make_work(make_server().url, JARVIS_MODULES=MODULES)


def sweeper(work: Any) -> Any:
    return work.spawn("workers", "sweeper")


def test_f5_every_value_is_itself_in_another_process(work: Any, until: Any) -> None:
    first = work.worker("solo")
    run = work.client.start("values", "values")
    until(lambda: status(run) is WorkflowStatus.SUSPENDED, first.output)
    first.end()

    second = work.worker("solo")
    work.client.signal("values", "values.checked", {})

    assert run.wait(30).result == {"pid": second.pid, "changed": []}


def test_f5_what_cannot_be_kept_is_refused_with_its_place_when_it_is_recorded(work: Any) -> None:
    work.worker("solo")
    failed = work.client.start("unstorable", "unstorable").wait(30)
    assert failed.status is WorkflowStatus.FAILED
    assert ".value['orders'][0]['lock']" in str(failed.failure)
    assert failed.failure.retry_at is None


def test_f7_a_run_whose_worker_was_killed_is_free_when_its_lease_ends(work: Any, until: Any) -> None:
    sweeper(work)
    work.hold()
    first = work.worker("solo")
    run = work.client.start("briefly-held", "orphan")
    until(work.began, first.output)
    killed = time.monotonic()
    first.end()  # kill -9, as the kernel does it that is out of memory

    second = work.worker("solo")
    until(lambda: len(work.began()) == 2, second.output)
    taken_over = time.monotonic() - killed
    work.release()

    assert run.wait(30).result == "done"
    assert run.snapshot().execution_attempt == 2
    print(f"taken over after {taken_over:.1f} s, with a lease of {LEASE} s")


def test_f7_a_run_that_ends_between_two_looks_is_never_called_dead(work: Any, until: Any) -> None:
    watching = sweeper(work)
    worker = work.worker("threads")
    for number in range(20):
        work.done(f"quick-{number}")
    ended = {entry.partition: (entry.status, RunSummary.of(entry).attempt) for entry in work.client.runs()}
    assert ended == {f"quick-{number}": ("completed", 1) for number in range(20)}
    assert "lease given back" not in worker.output() + watching.output()


def test_f7_a_process_that_lingers_after_its_run_has_ended_holds_nothing(work: Any, until: Any) -> None:
    sweeper(work)
    worker = work.worker("solo", JARVIS_SHUTDOWN_GRACE="1")
    run = work.client.start("lingering", "lingering")
    assert run.wait(30).result == "done"
    worker.signal(signal.SIGTERM)
    until(lambda: "bye" in worker.output().lower() or "shutdown" in worker.output().lower(), worker.output)

    next_worker = work.worker("solo")

    work.done("after it")
    assert worker.popen.poll() is None, "it still lingers"
    assert (status(run), run.snapshot().execution_attempt) == (WorkflowStatus.COMPLETED, 1)
    assert next_worker.popen.poll() is None


def test_f7_a_sweeper_that_was_paused_declares_nobody_dead_when_it_comes_back(work: Any, until: Any) -> None:
    """It stands still for longer than a lease, while a worker holds one run and another run comes to its end."""
    watching = sweeper(work)
    worker = work.worker("threads")
    work.hold()
    held = work.client.start("briefly-held", "held through it")
    until(work.began, worker.output)
    first = held.snapshot().lease_expires_at
    watching.signal(signal.SIGSTOP)
    quick = work.client.start("lingering", "ended meanwhile")
    assert quick.wait(30).result == "done"
    until(lambda: (held.snapshot().lease_expires_at - first).total_seconds() > LEASE, "the lease is renewed meanwhile")
    waiting = work.client.start("resting", "seen by the sweeper")
    watching.signal(signal.SIGCONT)

    until(lambda: status(waiting) is WorkflowStatus.COMPLETED, watching.output)
    work.release()
    assert held.wait(30).result == "done"
    assert [run.snapshot().execution_attempt for run in (held, quick, waiting)] == [1, 1, 2]


def status(run: Any) -> WorkflowStatus | None:
    found = run.snapshot()
    return None if found is None else found.status
