"""What a run can use: live services, built once for each segment, never stored."""

from collections.abc import Mapping
from typing import Any

__all__ = ["WorkflowResources"]


class WorkflowResources:
    """Services that nodes share, such as API clients. Subclass it with attributes of your own, or hand in a mapping.

    A subclass that is a context manager is entered when a segment begins and closed when it ends.
    """

    def __init__(self, services: Mapping[str, Any] | None = None) -> None:
        self._services = dict(services or {})

    def get(self, name: str) -> Any:
        """The service of this name; KeyError naming the known ones when there is none."""
        if name not in self._services:
            known = ", ".join(sorted(self._services)) or "none"
            raise KeyError(f"no resource {name!r}; there are: {known}")
        return self._services[name]
