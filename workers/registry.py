"""Which workflows this program knows, by name. Modules register theirs when they are imported."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final

from workers.errors import SettingsError, UnknownWorkflowError
from workflow import Workflow

__all__ = ["Factory", "definition", "load_modules", "names", "register", "roles_of"]

Factory = Callable[[str], Workflow[Any]]
"""Rebuilds a definition from a workflow id alone; inputs live in the run's start event."""

_FACTORIES: Final[dict[str, Factory]] = {}
_ROLES: Final[dict[str, tuple[str, ...]]] = {}


def register(name: str, factory: Factory, *, roles: Iterable[str] = ()) -> None:
    """Make a workflow known to workers. A later registration under the same name replaces the earlier one.

    ``roles`` are the agents' roles that its segments use: what limits a role (``[limits]``) limits them.
    """
    _FACTORIES[name] = factory
    _ROLES[name] = tuple(roles)


def roles_of(name: str) -> tuple[str, ...]:
    """The roles that the segments of a workflow use."""
    return _ROLES.get(name, ())


def definition(name: str, workflow_id: str) -> Workflow[Any]:
    """The definition of this name for a workflow id. Raises `UnknownWorkflowError` naming the known ones."""
    factory = _FACTORIES.get(name)
    if factory is None:
        raise UnknownWorkflowError(f"there is no workflow {name!r}: known are {', '.join(names()) or 'none'}")
    return factory(workflow_id).reconfigure(name=name)


def names() -> list[str]:
    """The known names, sorted."""
    return sorted(_FACTORIES)


def load_modules(modules: Iterable[str]) -> None:
    """Import the modules that register workflows. Raises `SettingsError` naming one that cannot be found."""
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as trouble:
            if trouble.name is None or not module.startswith(trouble.name):
                raise
            raise SettingsError(
                f"JARVIS_MODULES names {module!r}, which cannot be found: correct it, or install it"
            ) from trouble
