"""Executing a segment on behalf of a hint. A hint that comes twice, or late, is refused cheaply: that is normal."""

import structlog

from persistence import UnreachableError
from workers.composition import Runtime
from workflow import ExecutionRequest, WorkflowRefusedError

__all__ = ["run_segment"]

_log = structlog.get_logger(__name__)


def run_segment(runtime: Runtime, name: str, workflow_id: str, run_id: str) -> None:
    """Continue a run, fenced by its run id, to its next settlement. Never raises for what the run did."""
    with structlog.contextvars.bound_contextvars(workflow_id=workflow_id, run_id=run_id):
        try:
            state = runtime.definition(name, workflow_id).run(ExecutionRequest.resume(expected_run_id=run_id))
        except WorkflowRefusedError as refusal:
            _log.debug("hint refused", reason=refusal.reason.value)
        except UnreachableError as trouble:
            _log.warning("the store did not answer; the run is taken up again when its lease has ended", trouble=str(trouble))
        except Exception as failure:  # noqa: BLE001 - whatever a node raises is recorded with its run
            _log.exception("run failed", error=str(failure))
        else:
            _log.info("segment settled", status=state.execution.status.value, attempt=state.execution.attempt)
