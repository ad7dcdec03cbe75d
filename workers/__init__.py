"""The processes of the mesh: Celery workers, the sweeper, the consumers, and the client that starts runs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workers.client import MeshClient, RunHandle, RunResult
    from workers.errors import WorkersError
    from workers.registry import register
    from workers.settings import Settings

__all__ = ["MeshClient", "RunHandle", "RunResult", "Settings", "WorkersError", "register"]

_HOMES = {
    "MeshClient": "client",
    "RunHandle": "client",
    "RunResult": "client",
    "Settings": "settings",
    "WorkersError": "errors",
    "register": "registry",
}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use: a child's launcher must not pay for Celery."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"workers.{_HOMES[name]}"), name)
