"""Jarvis itself: the briefing and the watchdog, their sources, roles, ports and stores."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bus import InMemorySignalBus
    from mesh.briefing import (
        BriefingComposed,
        BriefingStarted,
        BriefingState,
        DailyBriefingWorkflow,
        OperationsCompleted,
        ResearchCompleted,
    )
    from mesh.errors import MeshError
    from mesh.heartbeats import InMemoryHeartbeatStore, RedisHeartbeatStore
    from mesh.knowledge import InMemoryKnowledgeStore, RedisKnowledgeStore
    from mesh.ports import JarvisAgentFactory, JarvisHeartbeatStore, JarvisKnowledgeStore, JarvisSignalBus, RoleAgent
    from mesh.resources import JarvisResources
    from mesh.roles.assignment import Assignment
    from mesh.watchdog import WatchdogRequest, WatchdogWorkflow

__all__ = [
    "Assignment",
    "BriefingComposed",
    "BriefingStarted",
    "BriefingState",
    "DailyBriefingWorkflow",
    "InMemoryHeartbeatStore",
    "InMemoryKnowledgeStore",
    "InMemorySignalBus",
    "JarvisAgentFactory",
    "JarvisHeartbeatStore",
    "JarvisKnowledgeStore",
    "JarvisResources",
    "JarvisSignalBus",
    "MeshError",
    "OperationsCompleted",
    "RedisHeartbeatStore",
    "RedisKnowledgeStore",
    "ResearchCompleted",
    "RoleAgent",
    "WatchdogRequest",
    "WatchdogWorkflow",
]

_HOMES = {
    "Assignment": "mesh.roles.assignment",
    "BriefingComposed": "mesh.briefing",
    "BriefingStarted": "mesh.briefing",
    "BriefingState": "mesh.briefing",
    "DailyBriefingWorkflow": "mesh.briefing",
    "InMemoryHeartbeatStore": "mesh.heartbeats",
    "InMemoryKnowledgeStore": "mesh.knowledge",
    "InMemorySignalBus": "bus",
    "JarvisAgentFactory": "mesh.ports",
    "JarvisHeartbeatStore": "mesh.ports",
    "JarvisKnowledgeStore": "mesh.ports",
    "JarvisResources": "mesh.resources",
    "JarvisSignalBus": "mesh.ports",
    "MeshError": "mesh.errors",
    "OperationsCompleted": "mesh.briefing",
    "RedisHeartbeatStore": "mesh.heartbeats",
    "RedisKnowledgeStore": "mesh.knowledge",
    "ResearchCompleted": "mesh.briefing",
    "RoleAgent": "mesh.ports",
    "WatchdogRequest": "mesh.watchdog",
    "WatchdogWorkflow": "mesh.watchdog",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
