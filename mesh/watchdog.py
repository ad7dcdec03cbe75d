"""The watchdog: one bounded pass over a list of agents. Its scheduling and the delivery of alerts are other people's work.

An alert's key is made of the agent and its last-seen time, so that sweeping the same facts again raises nothing new.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from pydantic import AwareDatetime

from mesh.resources import JarvisResources
from workflow import Event, Node, StopEvent, SystemClock, Workflow, WorkflowState

__all__ = ["STALE_TOPIC", "WATCHDOG", "WatchdogRequest", "WatchdogWorkflow", "alert_key", "is_stale"]

STALE_TOPIC = "agent.heartbeat.stale"
WATCHDOG = "watchdog"
"""The agent name under which every sweep beats, so that somebody can watch the watchdog."""
STALE_AFTER = 300
"""Seconds without a beat after which an agent is stale."""
SWEEP_LIMIT = 60
"""Seconds that one sweep may take: its lease, which is not renewed."""


class WatchdogRequest(Event):
    """Look at these agents. ``stale_after_seconds`` is the age of a beat from which on its agent is stale."""

    agents: tuple[str, ...]
    checked_at: AwareDatetime
    stale_after_seconds: float = STALE_AFTER


class Sweep(Node):
    """Compares each agent's last beat with the moment of the check."""

    step_name = "sweep"

    def __call__(self, event: WatchdogRequest, state: WorkflowState, resources: JarvisResources) -> StopEvent:
        """Report every agent that is stale or missing; beat for the watchdog itself."""
        found = {agent: resources.heartbeats.last_seen(agent) for agent in event.agents}
        stale = [agent for agent, seen in found.items() if is_stale(seen, event.checked_at, event.stale_after_seconds)]
        for agent in stale:
            _report(agent, found[agent], event.checked_at, resources)
        resources.heartbeats.beat(WATCHDOG)
        return StopEvent({"stale": stale, "healthy": [agent for agent in found if agent not in stale]})


class WatchdogWorkflow(Workflow[WorkflowState]):
    """One sweep. The arguments only form its start event, so that the id alone rebuilds the definition."""

    name = "watchdog"
    lease_timeout = SWEEP_LIMIT
    lease_renewal = False
    max_steps = 1

    def __init__(
        self,
        workflow_id: str,
        agents: Iterable[str] = (),
        checked_at: dt.datetime | None = None,
        stale_after_seconds: float = STALE_AFTER,
        **options: Any,
    ) -> None:
        super().__init__(workflow_id, **options)
        self._agents = tuple(agents)
        self._checked_at = checked_at
        self._stale_after = stale_after_seconds

    def start_event(self) -> WatchdogRequest:
        """See `Workflow.start_event`."""
        return WatchdogRequest(
            agents=self._agents,
            checked_at=self._checked_at or SystemClock().now(),
            stale_after_seconds=self._stale_after,
        )

    def nodes(self) -> Iterable[Node]:
        """See `Workflow.nodes`."""
        return (Sweep(),)


def is_stale(last_seen: dt.datetime | None, checked_at: dt.datetime, stale_after_seconds: float) -> bool:
    """Whether an agent counts as stopped: never seen, or not for so long."""
    return last_seen is None or (checked_at - last_seen).total_seconds() >= stale_after_seconds


def alert_key(agent: str, last_seen: dt.datetime | None) -> str:
    """The id of the alert about this silence: the same in every sweep that sees it."""
    seen = "missing" if last_seen is None else last_seen.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return f"watchdog/{agent}/{seen}"


def _report(agent: str, last_seen: dt.datetime | None, checked_at: dt.datetime, resources: JarvisResources) -> None:
    key = alert_key(agent, last_seen)
    seen = None if last_seen is None else last_seen.astimezone(dt.UTC).isoformat()
    checked = checked_at.astimezone(dt.UTC).isoformat()
    resources.knowledge.put(key, f"{agent} has not been seen since {seen or 'ever'}; checked at {checked}")
    resources.signals.publish(key, STALE_TOPIC, {"agent": agent, "last_seen": seen, "checked_at": checked})
