"""Names of workflows and runs: what is allowed, and how a new run is named."""

import re
import secrets

from workflow.errors import WorkflowError
from workflow.text import is_unicode

__all__ = ["check_run_id", "check_workflow_id", "new_run_id", "new_writer"]

WORKFLOW_ID_LIMIT = 255
"""Characters, not bytes; a store may allow fewer bytes."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")


def check_workflow_id(workflow_id: str) -> str:
    """The id itself if it may name a workflow; otherwise `WorkflowError`, before the store is touched."""
    if not 1 <= len(workflow_id) <= WORKFLOW_ID_LIMIT:
        raise WorkflowError(f"invalid workflow ID: it needs 1 to {WORKFLOW_ID_LIMIT} characters, not {len(workflow_id)}")
    if _CONTROL_CHARACTER.search(workflow_id) or not is_unicode(workflow_id):
        raise WorkflowError(f"invalid workflow ID {workflow_id!r}: remove control characters and broken Unicode")
    if workflow_id.startswith("__"):
        raise WorkflowError(f"invalid workflow ID {workflow_id!r}: two leading underscores are reserved")
    return workflow_id


def check_run_id(run_id: str) -> str:
    """The id itself if a caller may reserve it for a run; otherwise `WorkflowError`."""
    if not _RUN_ID.fullmatch(run_id):
        raise WorkflowError(
            f"invalid run ID {run_id!r}: start with a letter or digit, then letters, digits, '_' or '-', 128 characters at most"
        )
    return run_id


def new_run_id() -> str:
    """A run id that nobody has used."""
    return f"run_{secrets.token_hex(8)}"


def new_writer() -> str:
    """A token that no two writers share, so that they never write the same control bytes."""
    return secrets.token_hex(6)
