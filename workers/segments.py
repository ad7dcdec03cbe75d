"""Executing a segment on behalf of a hint. A hint that comes twice, or late, is refused cheaply: that is normal."""

import random
import secrets
from dataclasses import replace

import structlog

from bus import BusError
from persistence import IndexEntry, PersistenceError, UnreachableError
from workers.composition import Runtime
from workers.errors import WorkersError
from workers.history.telling import signal_of
from workflow import ExecutionRequest, RefusalReason, RunStalledError, WorkflowError, WorkflowRefusedError, WorkflowStatus
from workflow.errors import UnreadableRecordError
from workflow.history import Happened, HistoryLine
from workflow.index import RunSummary, make_due

__all__ = ["run_segment"]

LONGEST_WAIT = 3
"""Seconds after which a segment without a slot asks again at the latest: a slot may be given back at any moment."""

_log = structlog.get_logger(__name__)


def run_segment(runtime: Runtime, name: str, workflow_id: str, run_id: str) -> None:
    """Continue a run, fenced by its run id, to its next settlement, once there is a slot for it.

    Never raises for what the run did.
    """
    with structlog.contextvars.bound_contextvars(workflow_id=workflow_id, run_id=run_id):
        try:
            entry = runtime.store.entry(workflow_id)
            if not _is_wanted(entry, runtime.now()):
                _log.debug("hint refused", reason="the run has failed, and is not due")
                return
            with runtime.gate.slot(name, f"{workflow_id}/{run_id}/{secrets.token_hex(4)}") as wait:
                if wait is None:
                    _execute(runtime, name, workflow_id, run_id, entry)
                else:
                    _ask_again(runtime, workflow_id, run_id, wait)
        except (PersistenceError, BusError, WorkersError) as trouble:
            _log.warning("no segment was run; the sweeper sends the hint again", trouble=str(trouble))


def _is_wanted(entry: IndexEntry | None, now: float) -> bool:
    """Whether a hint may take the run up. One that has failed is due when it is to be tried again, and only then.

    A hint that comes twice, or late, must not try again what has failed for good, nor shorten what a policy waits. Once the
    sweeper has found the run due, it moves the entry on and counts its hint.
    """
    if entry is None or entry.status != WorkflowStatus.FAILED.value:
        return True
    return entry.due is not None and (entry.due <= now or RunSummary.of(entry).hints > 0)


def _execute(runtime: Runtime, name: str, workflow_id: str, run_id: str, entry: IndexEntry | None) -> None:
    definition = runtime.definition(name, workflow_id)
    if entry is not None and entry.awaits is not None:
        # A signal that is on the bus comes before a deadline that has passed since.
        runtime.subscriptions.catch_up_safely(entry)
    try:
        state = definition.run(ExecutionRequest.resume(expected_run_id=run_id))
    except WorkflowRefusedError as refusal:
        if refusal.reason is RefusalReason.INCOMPATIBLE_VERSION and entry is not None:
            _say_it_stands(runtime, entry, refusal)
        else:
            _log.debug("hint refused", reason=refusal.reason.value)
        return
    except RunStalledError as stalled:
        _log.error("run parked", reason=str(stalled))
    except UnreachableError as trouble:
        _log.warning("the store did not answer; the run is taken up again when its lease has ended", trouble=str(trouble))
        return
    except Exception as failure:  # noqa: BLE001 - whatever a node raises is recorded with its run
        if isinstance(failure, UnreadableRecordError | WorkflowError) and entry is not None and _is_unclaimed(runtime, entry):
            _say_it_stands(runtime, entry, failure)
            return
        _log.exception("run failed", error=str(failure))
    else:
        _log.info("segment settled", status=state.execution.status.value, attempt=state.execution.attempt)
    runtime.wake_ups.tell(workflow_id, run_id)


def _is_unclaimed(runtime: Runtime, entry: IndexEntry) -> bool:
    """Whether the run is where it was: then what was met is recorded nowhere."""
    now = runtime.store.entry(entry.partition)
    return now is not None and replace(RunSummary.of(now), hints=0) == replace(RunSummary.of(entry), hints=0)


def _say_it_stands(runtime: Runtime, entry: IndexEntry, why: Exception) -> None:
    """Tell people of a run that cannot be read here. Nothing was changed: a program that can read it goes on with it."""
    run = RunSummary.of(entry)
    _log.error("a run cannot be continued here", reason=str(why), attempt=run.attempt)
    now = runtime.now()
    line = HistoryLine(Happened.STALLED, entry.partition, run.run_id, entry.name, run.attempt, now, now, entry.tag, run.step)
    shown = isinstance(why, WorkflowRefusedError) or runtime.engine_of(entry.name, entry.partition).hides_nothing
    told = signal_of(replace(line, error=type(why).__name__, message=str(why) if shown else None))
    if told is not None:
        runtime.signals.publish(told.id, told.topic, told.payload)


def _ask_again(runtime: Runtime, workflow_id: str, run_id: str, wait: float) -> None:
    """Leave a run without a slot to the sweeper, a moment later: messages that go round in circles would crowd the queue."""
    moment = min(wait, LONGEST_WAIT) * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
    make_due(runtime.store, workflow_id, run_id, runtime.now() + moment)
    _log.debug("no slot is free", again_in=round(moment, 3))
