"""The four ports through which Jarvis meets the world. An application may bring its own adapters.

Nodes may run twice after a crash, so publishing is idempotent by id and writing by key.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Protocol

from mesh.roles.assignment import Assignment

__all__ = ["JarvisAgentFactory", "JarvisHeartbeatStore", "JarvisKnowledgeStore", "JarvisSignalBus", "RoleAgent"]


class JarvisSignalBus(Protocol):
    """Facts for whoever subscribes."""

    def publish(self, id: str, topic: str, payload: Mapping[str, Any]) -> object:  # noqa: A002 - the promised name
        """Publish a signal once: a repeat of the same id changes nothing."""
        ...


class JarvisKnowledgeStore(Protocol):
    """Notes that agents share."""

    def put(self, key: str, value: str) -> None:
        """Keep a note; it replaces the one under the same key."""
        ...

    def get(self, key: str) -> str | None:
        """The note under a key, or None."""
        ...


class JarvisHeartbeatStore(Protocol):
    """When each agent was last seen."""

    def beat(self, agent: str, at: dt.datetime | None = None) -> None:
        """The agent was alive at this moment (now, by the store's clock, when None). The newest beat wins."""
        ...

    def last_seen(self, agent: str) -> dt.datetime | None:
        """The newest beat of an agent, aware; None when it never beat."""
        ...

    def all(self) -> Mapping[str, dt.datetime]:
        """Every agent that ever beat and is not forgotten, with its newest beat."""
        ...

    def forget(self, agent: str, seen: dt.datetime) -> bool:
        """Forget an agent of which this is the newest beat. False when it has beaten since, or is not known."""
        ...


class RoleAgent(Protocol):
    """An agent that plays one role."""

    def perform(self, assignment: Assignment) -> str:
        """Do one piece of work and return its text in Markdown. Raises when it cannot; the run is then resumed later."""
        ...


class JarvisAgentFactory(Protocol):
    """Makes the agents."""

    def make(self, role: str, thread_id: str) -> RoleAgent:
        """A freshly configured agent for a role. ``thread_id`` names its conversation, the same in every execution."""
        ...
