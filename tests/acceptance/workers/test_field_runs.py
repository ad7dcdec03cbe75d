"""Cases from the field: values that change on their way through the store, runs that stand for ever or are declared dead."""

from typing import Any

import pytest

from workflow import WorkflowStatus
from workflow.index import RunSummary

pytestmark = pytest.mark.processes

MODULES = "workers.definitions,scripted_work,field_work"


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


def test_f7_a_run_that_ends_between_two_looks_is_never_called_dead(work: Any, until: Any) -> None:
    watching = sweeper(work)
    worker = work.worker("threads")
    for number in range(20):
        work.done(f"quick-{number}")
    ended = {entry.partition: (entry.status, RunSummary.of(entry).attempt) for entry in work.client.runs()}
    assert ended == {f"quick-{number}": ("completed", 1) for number in range(20)}
    assert "lease given back" not in worker.output() + watching.output()


def status(run: Any) -> WorkflowStatus | None:
    found = run.snapshot()
    return None if found is None else found.status
