"""The agent factory that needs no model: each role is played by rule."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import httpx2

from mesh.errors import UnknownRoleError
from mesh.roles.composer import BriefingRole
from mesh.roles.operations import OperationsRole
from mesh.roles.research import ResearchRole
from mesh.settings import MeshConfig
from mesh.sources.fetch import Fetcher
from mesh.sources.mesh_state import MeshFactsProvider

ROLES = ("research", "operations", "briefing")


def utc_now() -> dt.datetime:
    """Return the present moment, aware."""
    return dt.datetime.now(dt.UTC)


class RuleAgents:
    """A `JarvisAgentFactory` over the sources of jarvis.toml.

    `state` looks at the mesh, where there is one; `clock` returns aware times; `transport` replaces the network in tests.
    """

    def __init__(
        self,
        config: MeshConfig,
        state: MeshFactsProvider | None = None,
        clock: Callable[[], dt.datetime] = utc_now,
        *,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._config = config
        self._state = state
        self._clock = clock
        self._transport = transport

    def make(self, role: str, thread_id: str) -> ResearchRole | OperationsRole | BriefingRole:
        """Return the agent that plays `role`. Raises `UnknownRoleError` for a role that is not one of `ROLES`.

        The thread is for agents that remember a conversation; rules remember nothing.
        """
        match role:
            case "research":
                return ResearchRole(self._config, self._fetcher, self._clock)
            case "operations":
                return OperationsRole(self._config, self._state, self._fetcher, self._clock)
            case "briefing":
                return BriefingRole(self._config, self._clock)
            case _:
                raise UnknownRoleError(role, ROLES)

    def _fetcher(self) -> Fetcher:
        return Fetcher(transport=self._transport)
