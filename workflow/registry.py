"""Which classes records may name. Nothing read from a store can name a class that the program has not defined."""

from typing import Any, Final

__all__ = ["defined_type", "register_type", "type_name"]

_TYPES: Final[dict[str, type[Any]]] = {}


def type_name(cls: type[Any]) -> str:
    """The name of a class in records: the ``type_name`` that the class itself declares, else module and qualified name."""
    declared = cls.__dict__.get("type_name")
    return declared if isinstance(declared, str) else f"{cls.__module__}.{cls.__qualname__}"


def register_type(cls: type[Any]) -> None:
    """Make a class known. A class defined again under its old name replaces the older one."""
    _TYPES[type_name(cls)] = cls


def defined_type(name: str) -> type[Any] | None:
    """The class that the program has defined under this name, or None."""
    return _TYPES.get(name)
