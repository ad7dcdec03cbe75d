"""Who listens to the runs of this process: the log always, and OpenTelemetry where it is installed."""

import structlog

from workers.telemetry.tracing import open_telemetry
from workflow.observing import Ending, Listener, NodeEnded, Observation

__all__ = ["log_steps", "process_listeners"]

DIGITS = 3
"""Milliseconds are as fine as a person reads."""

_log = structlog.get_logger(__name__)


def process_listeners() -> tuple[Listener, ...]:
    """The listeners of every definition that this process runs."""
    tracing = open_telemetry()
    return (log_steps,) if tracing is None else (log_steps, tracing)


def log_steps(observation: Observation) -> None:
    """One line for each step: what it was, how long it took, how it ended. Why a run failed is logged with the run."""
    if not isinstance(observation, NodeEnded):
        return
    say = _log.warning if observation.outcome is Ending.FAILED else _log.info
    say(
        f"step {observation.outcome.value}",
        node=observation.source,
        seconds=round(observation.seconds, DIGITS),
        step=observation.step_id,
        workflow_id=observation.execution.workflow_id,
        run_id=observation.execution.run_id,
        **({} if observation.branch is None else {"branch": observation.branch}),
        **({} if observation.error is None else {"error": repr(observation.error)}),
    )
