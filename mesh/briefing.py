"""The daily briefing: research, then operations, then the composition. The workflow owns the sequence, never the agents.

BriefingStarted -> ResearchCompleted -> OperationsCompleted -> BriefingComposed -> stop

Each agent is asked once, inside a memo, so that a run that is resumed does not ask again. Notes and signals bear keys that
derive from the workflow id, so that writing them again changes nothing.
"""

import datetime as dt
import re
from collections.abc import Iterable
from typing import Any, Self

from pydantic import AwareDatetime

from mesh.errors import MeshError
from mesh.lateness import labelled
from mesh.resources import JarvisResources
from mesh.roles.assignment import Assignment
from workflow import Event, Node, StopEvent, Workflow, WorkflowState

__all__ = [
    "BriefingComposed",
    "BriefingStarted",
    "BriefingState",
    "DailyBriefingWorkflow",
    "OperationsCompleted",
    "ResearchCompleted",
    "briefing_id",
]

RETAIN_FOR = 90 * 24 * 3600
"""Seconds for which a finished briefing is kept, so that asking again returns it."""

_ID = re.compile(r"jarvis-briefing-(?:(?P<operator>.+)-)?(?P<date>\d{4}-\d\d-\d\d)(?:\.(?P<edition>[1-9]\d*))?")


class BriefingStarted(Event):
    """A briefing is wanted for a local date of the operator. ``due`` is when it should be there, by the operator's clock."""

    date: dt.date
    edition: int = 1
    operator: str | None = None
    due: AwareDatetime | None = None


class ResearchCompleted(Event):
    """The research is in the state."""


class OperationsCompleted(Event):
    """The report on operations is in the state."""


class BriefingComposed(Event):
    """The briefing is in the state."""


class BriefingState(WorkflowState):
    """What the nodes hand on."""

    date: dt.date | None = None
    due: AwareDatetime | None = None
    notes: str = ""
    """Where this edition's notes are kept: the first part of their keys."""
    research: str | None = None
    operations: str | None = None
    briefing: str | None = None


class _RoleNode(Node):
    """Asks one role, keeps its answer as a note, and says that it is there."""

    role: str
    note: str
    topic: str

    def ask(self, state: BriefingState, resources: JarvisResources) -> str:
        """The role's text: asked once in the life of the run."""
        workflow_id = state.execution.workflow_id
        assignment = Assignment(role=self.role, date=_date(state), research=state.research, operations=state.operations)
        agent = resources.agents.make(self.role, f"{workflow_id}/{self.role}")
        return self.memoize(f"agent.{self.role}", lambda: agent.perform(assignment))

    def tell(self, text: str, state: BriefingState, resources: JarvisResources) -> None:
        """Keep the note, then publish the signal that points to it."""
        key = f"{state.notes}/{self.note}"
        resources.knowledge.put(key, text)
        payload = {"workflow_id": state.execution.workflow_id, "date": _date(state).isoformat(), "note": key}
        resources.signals.publish(f"{state.execution.workflow_id}/{self.topic}", self.topic, payload)


class Research(_RoleNode):
    """What is new."""

    step_name = "research"
    role, note, topic = "research", "research", "research.completed"

    def __call__(self, event: BriefingStarted, state: BriefingState, resources: JarvisResources) -> ResearchCompleted:
        """Take the date from the event and ask the research role."""
        state.date, state.due, state.notes = event.date, event.due, _notes(event)
        state.research = self.ask(state, resources)
        self.tell(state.research, state, resources)
        return ResearchCompleted()


class Operations(_RoleNode):
    """How things stand."""

    step_name = "operations"
    role, note, topic = "operations", "operations", "operations.completed"

    def __call__(self, event: ResearchCompleted, state: BriefingState, resources: JarvisResources) -> OperationsCompleted:
        """Ask the operations role, which sees the research."""
        state.operations = self.ask(state, resources)
        self.tell(state.operations, state, resources)
        return OperationsCompleted()


class Compose(_RoleNode):
    """The briefing itself."""

    step_name = "compose"
    role = "briefing"

    def __call__(self, event: OperationsCompleted, state: BriefingState, resources: JarvisResources) -> BriefingComposed:
        """Ask the briefing role, which sees research and operations. A late briefing says so."""
        state.briefing = labelled(self.ask(state, resources), state.due, resources.clock.now())
        return BriefingComposed()


class Publish(_RoleNode):
    """Makes the briefing known."""

    step_name = "publish"
    note, topic = "final", "briefing.ready"

    def __call__(self, event: BriefingComposed, state: BriefingState, resources: JarvisResources) -> StopEvent:
        """Keep the final note and say that the briefing is ready."""
        text = state.briefing or ""
        self.tell(text, state, resources)
        return StopEvent(text)


class DailyBriefingWorkflow(Workflow[BriefingState]):
    """One briefing for one operator, local date and edition, kept for 90 days. The workflow id says which."""

    name = "daily-briefing"
    lease_timeout = 60
    max_steps = 4
    retain_for = RETAIN_FOR

    def __init__(self, date: dt.date, *, edition: int = 1, operator: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._asked = BriefingStarted(date=date, edition=edition, operator=operator)

    @classmethod
    def from_id(cls, workflow_id: str, **options: Any) -> Self:
        """The definition behind a workflow id. Raises `MeshError` for an id that names no briefing."""
        found = _ID.fullmatch(workflow_id)
        try:
            if found is None:
                raise ValueError("it does not match")
            date, edition = dt.date.fromisoformat(found["date"]), int(found["edition"] or 1)
        except ValueError as trouble:
            form = "jarvis-briefing-<date> or jarvis-briefing-<operator>-<date>, then .<edition> for a later one"
            raise MeshError(f"workflow id {workflow_id!r} names no briefing: it looks like {form}") from trouble
        return cls(date, edition=edition, operator=found["operator"], **options)

    def declared_id(self) -> str:
        """See `Workflow.declared_id`."""
        return briefing_id(self._asked.date, self._asked.edition, self._asked.operator)

    def start_event(self) -> BriefingStarted:
        """See `Workflow.start_event`."""
        return self._asked

    def nodes(self) -> Iterable[Node]:
        """See `Workflow.nodes`."""
        return (Research(), Operations(), Compose(), Publish())


def briefing_id(date: dt.date, edition: int = 1, operator: str | None = None) -> str:
    """The workflow id of one briefing."""
    whose = f"{operator}-" if operator else ""
    return f"jarvis-briefing-{whose}{date.isoformat()}{_suffix(edition)}"


def _notes(event: BriefingStarted) -> str:
    whose = f"{event.operator}/" if event.operator else ""
    return f"briefing/{whose}{event.date.isoformat()}{_suffix(event.edition)}"


def _suffix(edition: int) -> str:
    return "" if edition == 1 else f".{edition}"


def _date(state: BriefingState) -> dt.date:
    if state.date is None:
        raise MeshError("this briefing has no date yet: its first node takes it from the start event")
    return state.date
