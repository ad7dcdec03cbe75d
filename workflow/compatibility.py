"""Whether a definition can continue a run that another version of it began. Asked before the run is claimed.

Compatible is: each settled step that is not folded was made by the node that handles its event today, by the same step name,
and the event that comes next has a handler; so also in the branches of a fork that is open. Anything else may be added, changed
or removed.
"""

from collections.abc import Collection, Mapping

from workflow.errors import RefusalReason, WorkflowRefusedError
from workflow.events import Event, StopEvent
from workflow.graph import NodeSpec
from workflow.parallel import ParallelEvent
from workflow.path import RecordedPath

__all__ = ["check_structure", "check_version"]


def check_version(path: RecordedPath, version: str | None, compatible: Collection[str]) -> None:
    """Refuse a run of another declared version, unless it is listed as compatible. Without a version nothing is asked."""
    began = path.store.ignition.version
    if version is None or began is None or began == version or began in compatible:
        return
    raise _incompatible(path, f"it began with version {began!r}, and this is {version!r}: add it to `compatible_versions`")


def check_structure(path: RecordedPath, nodes: Mapping[type[Event], NodeSpec]) -> None:
    """Refuse a run whose path these nodes did not make, or cannot continue, saying what changed."""
    index, event = path.first, path.first_event()
    while (name := path.name_of(index)) is not None:
        spec = nodes.get(type(event))
        if spec is None or spec.step_name != name:
            now = f"is handled by {spec.step_name!r} now" if spec else "is handled by no node any more"
            raise _incompatible(path, f"step {index} was made by {name!r}, but its event {type(event).__qualname__} {now}")
        record = path.step(index)
        index, event = index + 1, record.event if record else event
    if isinstance(event, StopEvent):
        return
    if isinstance(event, ParallelEvent):
        for branch, begins in event.branches.items():
            check_structure(path.branch(index - 1, branch, begins), nodes)
    _check_next(path, nodes.get(type(event)), index, event)


def _check_next(path: RecordedPath, spec: NodeSpec | None, index: int, event: Event) -> None:
    """The step that comes next: it needs a node, and a run that waits on this path needs the one that waited."""
    if spec is None:
        raise _incompatible(path, f"no node handles {type(event).__qualname__}, the event of step {index}")
    for step_id in path.store.control.waiting_steps:
        if path.holds(step_id) and step_id != path.step_id(index, spec.step_name):
            raise _incompatible(path, f"it waits in step {step_id!r}, but its event is handled by {spec.step_name!r} now")


def _incompatible(path: RecordedPath, change: str) -> WorkflowRefusedError:
    message = f"workflow {path.store.workflow_id!r} cannot be continued by this definition: {change}"
    choice = "continue it with the definition that began it, or abandon() it and start anew"
    return WorkflowRefusedError(RefusalReason.INCOMPATIBLE_VERSION, f"{message}. Nothing was changed: {choice}.")
