"""What can go wrong in the mesh, as a person would say it.

    MeshError
    ├── ConfigError        jarvis.toml cannot be used as it stands
    └── UnknownRoleError   an agent was asked for under a role that nobody plays

A source that cannot be read is not an error: it is a gap in the briefing (`mesh.sources.item.Gap`).
"""

from __future__ import annotations

from collections.abc import Iterable


class MeshError(Exception):
    """Root of the room's errors. The message is one line that says what is wrong and what to do."""


class ConfigError(MeshError):
    """Raised while jarvis.toml is read. The message names the file, the key and the remedy: correct that key."""


class UnknownRoleError(MeshError):
    """Raised by an agent factory for a role it does not know. Ask for one of the roles in the message."""

    def __init__(self, role: str, known: Iterable[str]) -> None:
        super().__init__(f"no agent plays the role {role!r}; known roles: {', '.join(sorted(known))}")
        self.role = role
