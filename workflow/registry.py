"""Which classes records may name. Nothing read from a store can name a class that the program has not defined.

Events, states and requests register when they are defined, and with them the enums, dataclasses and pydantic models that their
fields are annotated with. Others are listed in a workflow's ``types`` or named at a memo.
"""

import dataclasses
import enum
import typing
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

__all__ = ["defined_type", "held_classes", "is_storable", "register_type", "type_name"]

_TYPES: Final[dict[str, type[Any]]] = {}


def type_name(cls: type[Any]) -> str:
    """The name of a class in records: the ``type_name`` that the class itself declares, else module and qualified name."""
    declared = cls.__dict__.get("type_name")
    return declared if isinstance(declared, str) else f"{cls.__module__}.{cls.__qualname__}"


def register_type(cls: type[Any]) -> None:
    """Make a class known, and what its fields hold. A class defined again under its old name replaces the older one."""
    _TYPES[type_name(cls)] = cls
    for annotation in _annotations(cls):
        for held in held_classes(annotation):
            if is_storable(held) and defined_type(type_name(held)) is not held:
                register_type(held)


def defined_type(name: str) -> type[Any] | None:
    """The class that the program has defined under this name, or None."""
    return _TYPES.get(name)


def is_storable(cls: type[Any]) -> bool:
    """Whether records can hold objects of this class by their fields or their name."""
    return dataclasses.is_dataclass(cls) or issubclass(cls, enum.Enum | BaseModel)


def held_classes(annotation: Any) -> Iterator[type[Any]]:
    """The classes that an annotation speaks of, also inside unions and containers."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from held_classes(argument)


def _annotations(cls: type[Any]) -> list[Any]:
    if issubclass(cls, BaseModel):
        return [field.annotation for field in cls.model_fields.values()]
    if not dataclasses.is_dataclass(cls):
        return []
    try:
        return list(typing.get_type_hints(cls).values())
    except (NameError, TypeError):
        return []  # what cannot be resolved here may still be listed in `types`
